/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Suspend to RAM, and the wake-up by the RTC's alarm: memory as it was, at the FACS's waking vector
 * in real mode, and not one instruction after the one that suspended. The waking code is the
 * trampoline of the other vCPUs, which enters test_main() anew.
 */
#include "guest.h"

extern char trampoline[], trampoline_end[];

static volatile u32 suspended, went_on;
static u32 pm1_evt, pm1_cnt;
static u8 pattern[65536];

static u32 get32(const u8 *p)
{
    return p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
}

static bool same(const u8 *p, const char *sig)
{
    for (; *sig; sig++, p++) {
        if (*p != (u8)*sig) {
            return false;
        }
    }
    return true;
}

static u8 *find_table(const char *sig)
{
    u8 *rsdp = (u8 *)0xe0000, *rsdt;

    for (; !same(rsdp, "RSD PTR "); rsdp += 16) {
        if (rsdp >= (u8 *)0x100000) {
            return NULL;
        }
    }
    rsdt = (u8 *)(u64)get32(rsdp + 16);
    for (u32 i = 36; i + 4 <= get32(rsdt + 4); i += 4) {
        u8 *t = (u8 *)(u64)get32(rsdt + i);

        if (same(t, sig)) {
            return t;
        }
    }
    return NULL;
}

static u8 cmos_read(u8 reg)
{
    outb(0x70, reg);
    return inb(0x71);
}

static void cmos_write(u8 reg, u8 v)
{
    outb(0x70, reg);
    outb(0x71, v);
}

/* With less than 48 MiB of memory (suspend.py) somebody else wakes us. */
static bool alarm_wakes(void)
{
    return (cmos_read(0x17) | cmos_read(0x18) << 8) >= 47 * 1024;
}

/* The alarm goes off every second. */
static void set_alarm(void)
{
    while (cmos_read(10) & 0x80) {
        cpu_pause();
    }
    cmos_write(1, 0xc0);
    cmos_write(3, 0xc0);
    cmos_write(5, 0xc0);
    cmos_read(12);
    cmos_write(11, cmos_read(11) | 0x20);
}

static void woken(void)
{
    u32 wrong = 0;

    check_eq("instructions after the one that suspends", went_on, 0);
    check_eq("WAK_STS, and RTC_STS of an alarm", inw((u16)pm1_evt) & 0x8400,
             alarm_wakes() ? 0x8400 : 0x8000);
    check_eq("SCI_EN lasts", inw((u16)pm1_cnt) & 1, 1);
    for (u32 i = 0; i < sizeof(pattern); i++) {
        wrong += pattern[i] != (u8)(i * 7);
    }
    check_eq("bytes of memory that changed", wrong, 0);
}

void test_main(void)
{
    u8 *fadt, *facs;
    char *to = (char *)0x8000;

    if (suspended) {
        woken();
        return;
    }
    fadt = find_table("FACP");
    if (!fadt) {
        check("FADT", false);
        return;
    }
    facs = (u8 *)(u64)get32(fadt + 36);
    pm1_evt = get32(fadt + 56);
    pm1_cnt = get32(fadt + 64);
    check("FACS", same(facs, "FACS"));
    *(volatile u32 *)(facs + 12) = 0x8000;
    check_eq("the FACS is writable", get32(facs + 12), 0x8000);
    for (char *from = trampoline; from < trampoline_end; from++) {
        *to++ = *from;
    }
    for (u32 i = 0; i < sizeof(pattern); i++) {
        pattern[i] = (u8)(i * 7);
    }
    outb((u16)get32(fadt + 48), fadt[52]); /* ACPI mode by SMI_CMD */
    if (alarm_wakes()) {
        set_alarm();
    }
    outw((u16)pm1_evt, 0x8400);
    outw((u16)(pm1_evt + 2), 0x400);
    suspended = 1;
    outw((u16)pm1_cnt, 0x2401); /* S3 */
    for (;;) {
        went_on = 1;
    }
}
