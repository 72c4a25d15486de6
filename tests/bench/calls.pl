# SPDX-License-Identifier: GPL-2.0-or-later
# Calls, regular expressions and arithmetic: the interpreter's dispatch; prints a sum.
sub f { my ($n) = @_; return $n < 2 ? $n : f($n - 1) + f($n - 2); }
my $s = f(23);
for my $i (1 .. 200000) { $s += $1 if "item$i=" . ($i * 3) =~ /=?(\d+)$/; }
my @a = map { ($_ * 7919) % 10007 } 1 .. 90000;
$s += $_ for (sort { $a <=> $b } @a)[0 .. 999];
print "sum $s\n";
