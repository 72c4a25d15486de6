# SPDX-License-Identifier: GPL-2.0-or-later
# A hash filled, read and walked; prints a sum.
my (%h, $s);
for my $i (1 .. 600000) { $h{"k" . ($i * 7919 % 50021)} += $i & 255; }
for my $k (keys %h) { $s += $h{$k} * length($k); }
for my $i (1 .. 600000) { $s += $h{"k" . $i} // 1; }
print "sum $s\n";
