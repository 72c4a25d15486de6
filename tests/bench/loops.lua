-- SPDX-License-Identifier: GPL-2.0-or-later
-- Tables, closures, strings and integer arithmetic; prints a sum.
local function f(n) if n < 2 then return n end return f(n - 1) + f(n - 2) end
local s = f(24)
local t = {}
for i = 1, 400000 do t[i % 5003 + 1] = (t[i % 5003 + 1] or 0) + i * 7 % 13 end
for _, v in ipairs(t) do s = s + v end
local ops = { function(x) return x + 1 end, function(x) return x ~ 5 end, function(x) return x * 3 & 0xffff end }
for i = 1, 300000 do s = s + ops[i % 3 + 1](i) end
local words = {}
for i = 1, 20000 do words[#words + 1] = string.format("%x", i * 31) end
s = s + #table.concat(words)
print("sum " .. s)
