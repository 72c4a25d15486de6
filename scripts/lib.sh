# SPDX-License-Identifier: GPL-2.0-or-later
# Shared by the scripts; source it. Sets $top, $cache and gives helpers.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${QEMU_RT_CACHE:-$top/.cache}

say() { printf '== %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# The comment a script begins with, behind its licence.
usage() { awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"; }

# Names of the packages for the given purposes.
packages_for() {
    local want
    for want in "$@"; do
        awk -v w="$want" '!/^#/ && $2 == w { print $1 }' "$top/scripts/packages.txt"
    done
}

apt_updated=
apt_refresh() {
    [ -n "$apt_updated" ] && return
    say "reading Debian's package lists"
    as_root apt-get -qq update || die "apt-get update failed: check /etc/apt/sources.list and the network"
    apt_updated=1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"
    else die "must be root, or have sudo, to run: $*"; fi
}

# Installs what is missing for the given purposes.
install_packages() {
    local p missing=()
    for p in $(packages_for "$@"); do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
    done
    [ ${#missing[@]} = 0 ] && return
    apt_refresh
    say "installing ${missing[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${missing[@]}" >"$cache/apt.log" 2>&1 || { tail -20 "$cache/apt.log" >&2; die "installing packages failed"; }
}

# Configures (once) and builds in $top/build/NAME with the given meson options; tells how far it is.
build() {
    local name=$1 dir=$top/build/$1 log=$cache/build-$1.log; shift
    say "building in build/$name"
    [ -f "$dir/build.ninja" ] || meson setup "$dir" "$top" "$@" >"$log" 2>&1 ||
        { tail -20 "$log" >&2; rm -rf "$dir"; die "meson setup failed"; }
    ninja -C "$dir" 2>&1 | tee "$log" | awk '
        match($0, /^\[[0-9]+\/[0-9]+\]/) {
            split(substr($0, 2, RLENGTH - 2), n, "/")
            part = int(n[1] * 5 / n[2])
            if (part != last && n[2] > 20) { print "   step " n[1] " of " n[2]; fflush() }
            last = part
        }' >&2 || { tail -40 "$log" >&2; die "the build failed"; }
}

mkdir -p "$cache"
