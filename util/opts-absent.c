/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What command lines for QEMU often say that this program has nothing for: taken where it asks for
 * nothing, else refused with what to say instead.
 */
#include "qemu/opts.h"

#include <glib.h>
#include <string.h>

bool opts_check_none(const char *option, const char *arg, Error **errp)
{
    static const struct {
        const char *option, *what;
    } kinds[] = { { "net", "network adapters" }, { "nic", "network adapters" },
                  { "vga", "display adapters" }, { "vnc", "displays" },
                  { "parallel", "parallel ports" }, { "audio", "sound devices" } };

    if (!strcmp(arg, "none")) {
        return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (!strcmp(option, kinds[i].option)) {
            error_setg(errp, "there are no %s in this program; use none", kinds[i].what);
        }
    }
    return false;
}

bool opts_check_keyboard(const char *arg, Error **errp)
{
    static const char *const layouts[] = {
        "ar", "bepo", "cz", "da",    "de", "de-ch", "en-gb", "en-us", "es",    "et", "fi", "fo",
        "fr", "fr-be", "fr-ca", "fr-ch", "hr", "hu", "is", "it", "ja", "lt", "lv", "mk",
        "nl", "nl-be", "no", "pl", "pt", "pt-br", "ru", "sl", "sv", "th", "tr", NULL };
    char *list;

    if (g_strv_contains(layouts, arg)) {
        return true; /* of displays, and there are none */
    }
    list = g_strjoinv(", ", (char **)layouts);
    error_setg(errp, "there is no such keyboard layout; it has no effect here, but must be one of: %s",
               list);
    g_free(list);
    return false;
}

#define DISKS   "there are no disks in this program yet; boot with -kernel and -initrd"
#define NETWORK "there is no network in this program yet; leave it out, or say -nic none"
#define DISPLAY "there are no displays in this program; use -display none, or -nographic"
#define USB     "there is no USB in this program; leave it out"
#define SOUND   "this program plays no sound; leave it out"
#define MIGRATE "a machine cannot be saved or migrated by this program yet; leave it out"

const char *opts_why_absent(const char *option)
{
    static const struct {
        const char *names, *why;
    } absent[] = {
        { " drive hda hdb hdc hdd cdrom fda fdb blockdev sd mtdblock pflash iscsi fsdev virtfs ", DISKS },
        { " netdev tftp bootp smb redir ", NETWORK },
        { " sdl curses spice full-screen alt-grab ctrl-grab no-frame no-quit portrait rotate g "
          "show-cursor ", DISPLAY },
        { " usb usbdevice ", USB },
        { " soundhw audio-help ", SOUND },
        { " incoming loadvm only-migratable ", MIGRATE },
        { " gdb s ", "there is no debugger's stub in this program yet; leave it out" },
        { " plugin trace ", "there are no plugins and trace points in this program; see -d help" },
        { " numa ", "there are no NUMA nodes in this program yet; leave it out" },
        { " acpitable smbios ", "firmware tables are made by this program alone; leave it out" },
        { " singlestep ", "-accel tcg,one-insn=on interprets every instruction" },
        { " watchdog watchdog-action ", "there is no watchdog in this program yet; leave it out" },
        { " tpmdev vmgenid ", "there is no such device in this program; leave it out" },
        { " chroot runas run-with ", "this program keeps its user and directory; leave it out" },
        { " enable-hax no-kvm no-kvm-irqchip no-kvm-pit ", "use -accel, and -machine kernel-irqchip=" },
        { " localtime startdate ", "use -rtc base=" },
        { " nodefconfig no-user-defaults ", "use -no-user-config" },
        { " mem-path mem-prealloc ", "use -object memory-backend-file and -machine memory-backend=" },
        { " balloon tdf win2k-hack no-frame enable-fips ", "it was removed from QEMU; leave it out" },
        { " option-rom ", "firmware loads no option ROMs of yours in this program yet; leave it out" },
        { " preconfig ", "a machine cannot be made step by step by QMP yet; leave it out" },
        { " dtb ", "a PC has no device tree; leave it out" },
        { " writeconfig ", "it was removed from QEMU; see -readconfig" },
        { " semihosting semihosting-config prom-env old-param xen-domid xen-attach ",
          "it is for other machines than a PC; leave it out" },
    };
    char *word = g_strdup_printf(" %s ", option);
    const char *why = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(absent) && !why; i++) {
        why = strstr(absent[i].names, word) ? absent[i].why : NULL;
    }
    g_free(word);
    return why;
}

void opts_error_no_machine(const char *name, Error **errp)
{
    if (!strcmp(name, "microvm") || !strcmp(name, "q35") || g_str_has_prefix(name, "pc-q35-")) {
        error_setg(errp, "QEMU has the machine '%s', this program not yet; use pc", name);
    } else if (g_str_has_prefix(name, "pc-i440fx-")) {
        error_setg(errp, "there is no such version of the machine here; use pc ('-machine help' lists all)");
    } else {
        error_setg(errp, "no such machine ('-machine help' lists them)");
    }
}

/* Is name one of QEMU's devices that this program may once have? Prefixes end with '*'. */
static bool qemu_has_device(const char *name)
{
    static const char *const known[] = {
        "virtio-*", "vhost-*", "e1000*", "rtl8139", "ne2k_*", "pcnet", "i8255*", "vmxnet3", "tulip", "igb",
        "ide-*", "piix3-ide", "piix4-ide", "ahci", "ich9-*", "scsi-*", "lsi*", "megasas*", "mptsas1068", "am53c974",
        "pvscsi", "nvme*", "sd-card", "sdhci-pci", "isa-fdc", "floppy", "usb-*", "*-usb-*", "qemu-xhci", "nec-usb-xhci",
        "VGA", "secondary-vga", "bochs-display", "cirrus-vga", "isa-vga", "qxl*", "vmware-svga", "ramfb", "ati-vga",
        "AC97", "ES1370", "intel-hda", "hda-*", "sb16", "adlib", "gus", "cs4231a", "i6300esb", "ib700", "isa-ipmi-*",
        "ipmi-*", "pci-ipmi-*", "pvpanic*", "vmcoreinfo", "vmgenid", "loader", "guest-loader", "generic-sdhci",
        "intel-iommu", "amd-iommu", "pcie-*", "pxb*", "pci-bridge", "ioh3420", "x3130-upstream", "xio3130-downstream",
        "i82801b11-bridge", "ivshmem-*", "edu", "pci-serial*", "isa-parallel", "isa-applesmc",
        "sga", "tpm-*", "vfio-*", "nvdimm", "pc-dimm", "cxl-*", "*-x86_64-cpu", "smbus-eeprom", "u2f-*", "ccid-*",
        "kvaser_pci", "*_can_pci", "rocker", "hyperv-testdev", "vmbus-bridge", "isa-cirrus-vga", "sysbus-*",
    };

    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (g_pattern_match_simple(known[i], name)) {
            return true;
        }
    }
    return false;
}

void opts_error_no_device(const char *name, Error **errp)
{
    if (qemu_has_device(name)) {
        error_setg(errp, "QEMU has the device '%s', this program not yet; leave it out ('-device help' lists what it has)",
                   name);
    } else {
        error_setg(errp, "'%s' is not a valid device model name; '-device help' lists them", name);
    }
}
