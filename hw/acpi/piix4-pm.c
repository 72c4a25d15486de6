/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * 82371AB-like power management function (Intel 290562, chapter 7.2): PM1 event and control block,
 * the 3.579545 MHz timer, GPE0, and the APM ports B2h/B3h by which software turns ACPI mode on. The
 * register meanings are ACPI 6.4, section 4.8.
 */
#include <string.h>
#include "accel/cpu.h"
#include "event/event.h"
#include "hw/i440fx.h"
#include "qemu/runstate.h"

#define PM_TIMER_HZ   3579545
#define PM_TIMER_MASK 0xffffffu
#define PM_TOGGLE     0x800000ll /* TMR_STS: bit 23 changed */

#define PM1_TMR    0x0001u
#define PM1_GBL    0x0020u
#define PM1_PWRBTN 0x0100u
#define PM1_RTC    0x0400u
#define PM1_WAK    0x8000u
#define PM1_STS_W1C (PM1_TMR | 0x0010u | PM1_GBL | PM1_PWRBTN | 0x0200u | PM1_RTC | PM1_WAK)
#define PM1_EN_BITS (PM1_TMR | PM1_GBL | PM1_PWRBTN | 0x0200u | PM1_RTC)

#define CNT_SCI_EN        0x0001u
#define CNT_BITS          0x1c03u /* SCI_EN, BM_RLD, SLP_TYP */
#define CNT_GBL_RLS       0x0004u
#define CNT_SLP_TYP_SHIFT 10
#define CNT_SLP_EN        0x2000u
#define SLP_TYP_S5        0
#define SLP_TYP_S3        1

enum { REG_PM1_STS = 0, REG_PM1_EN = 2, REG_PM1_CNT = 4, REG_PM_TMR = 8, REG_GPSTS = 0xc,
       REG_GPEN = 0xe, PM_IO_SIZE = 0x40 };

typedef struct Piix4Pm {
    PCIDevice pd;
    uint8_t disable_s3, disable_s4, s4_val;
    IrqLine sci;
    MemoryRegion pm_mr, apm_mr;

    /* Where pm_mr is mapped (-1: nowhere); guarded by map_lock, which is taken before lock. */
    QemuMutex map_lock;
    int32_t mapped;

    /* lock guards what follows. */
    QemuMutex lock;
    uint16_t sts, en, cnt, gpsts, gpen;
    int64_t toggle_tick; /* timer ticks at which TMR_STS is set next */
    uint8_t apmc, apms;
    EventTimer timer;
} Piix4Pm;

static Piix4Pm *piix4(DeviceState *dev)
{
    return container_of(pci_device(dev), Piix4Pm, pd);
}

static int64_t muldiv(int64_t a, int64_t b, int64_t c)
{
    return (int64_t)((__int128)a * b / c);
}

static int64_t ticks_now(void)
{
    return muldiv(clock_get_ns(CLOCK_TYPE_VIRTUAL), PM_TIMER_HZ, NANOSECONDS_PER_SECOND);
}

/* ---- Events (lock held) ---- */

static void update_tmr_sts(Piix4Pm *s)
{
    int64_t now = ticks_now();
    if (now >= s->toggle_tick) {
        s->sts |= PM1_TMR;
        s->toggle_tick = (now / PM_TOGGLE + 1) * PM_TOGGLE;
    }
}

static void update_sci(Piix4Pm *s)
{
    bool event;
    update_tmr_sts(s);
    event = (s->sts & s->en & PM1_EN_BITS) || (s->gpsts & s->gpen);
    /* Without SCI_EN events raise SMI#, for which no handler exists on this board. */
    irq_set(&s->sci, event && (s->cnt & CNT_SCI_EN));
    if (s->en & PM1_TMR && !(s->sts & PM1_TMR)) {
        /* Round up, so that the tick has been reached when the timer fires. */
        timer_mod(&s->timer, muldiv(s->toggle_tick, NANOSECONDS_PER_SECOND, PM_TIMER_HZ) + 1);
    } else {
        timer_del(&s->timer);
    }
}

static void pm_timer_fired(void *opaque)
{
    Piix4Pm *s = opaque;
    QEMU_LOCK_GUARD(&s->lock);
    update_sci(s);
}

static void power_button(void *opaque)
{
    Piix4Pm *s = opaque;
    QEMU_LOCK_GUARD(&s->lock);
    s->sts |= PM1_PWRBTN;
    update_sci(s);
    if (s->en & PM1_PWRBTN) {
        qemu_system_wakeup_request();
    }
}

/* IRQ8# of the RTC (290562, 7.2.1 RTC_STS). */
void piix4_pm_rtc(DeviceState *pm, int level)
{
    Piix4Pm *s = piix4(pm);
    QEMU_LOCK_GUARD(&s->lock);
    if (!level || (s->sts & PM1_RTC)) {
        return;
    }
    s->sts |= PM1_RTC;
    update_sci(s);
    if (s->en & PM1_RTC) {
        qemu_system_wakeup_request();
    }
}

void piix4_pm_set_gpe(DeviceState *pm, unsigned gpe)
{
    Piix4Pm *s = piix4(pm);

    QEMU_LOCK_GUARD(&s->lock);
    s->gpsts |= (uint16_t)BIT(gpe);
    update_sci(s);
}

static void enter_sleep(Piix4Pm *s)
{
    unsigned typ = s->cnt >> CNT_SLP_TYP_SHIFT & 7;
    if (typ == SLP_TYP_S5 || (typ == s->s4_val && !s->disable_s4)) {
        qemu_system_shutdown_request(SHUTDOWN_CAUSE_GUEST_SHUTDOWN);
    } else if (typ == SLP_TYP_S3 && !s->disable_s3) {
        qemu_system_suspend_request();
        if (s->sts & s->en & (PM1_PWRBTN | PM1_RTC)) {
            qemu_system_wakeup_request();
        }
    } else {
        return;
    }
    cpu_hold_self();
}

/* ---- Register block ---- */

static uint8_t pm_read_byte(Piix4Pm *s, unsigned off)
{
    unsigned shift = 8 * (off & 1);
    switch (off & ~1u) {
    case REG_PM1_STS:
        update_tmr_sts(s);
        return (uint8_t)(s->sts >> shift);
    case REG_PM1_EN:
        return (uint8_t)(s->en >> shift);
    case REG_PM1_CNT:
        return (uint8_t)(s->cnt >> shift);
    case REG_GPSTS:
        return (uint8_t)(s->gpsts >> shift);
    case REG_GPEN:
        return (uint8_t)(s->gpen >> shift);
    default:
        return 0;
    }
}

static uint64_t pm_read(void *opaque, hwaddr off, unsigned size)
{
    Piix4Pm *s = opaque;
    uint64_t v = 0;
    if (off - REG_PM_TMR < 4) {
        return (uint64_t)(ticks_now() & PM_TIMER_MASK) >> (8 * (off - REG_PM_TMR));
    }
    QEMU_LOCK_GUARD(&s->lock);
    for (unsigned i = 0; i < size; i++) {
        v |= (uint64_t)pm_read_byte(s, (unsigned)off + i) << (8 * i);
    }
    return v;
}

static void set_lane(uint16_t *reg, unsigned shift, uint8_t v, uint16_t bits)
{
    uint16_t mask = (uint16_t)(0xffu << shift) & bits;
    *reg = (uint16_t)((*reg & ~mask) | ((uint16_t)(v << shift) & mask));
}

static void pm_write_byte(Piix4Pm *s, unsigned off, uint8_t v)
{
    unsigned shift = 8 * (off & 1);
    uint16_t wide = (uint16_t)(v << shift);
    switch (off & ~1u) {
    case REG_PM1_STS:
        update_tmr_sts(s);
        s->sts &= (uint16_t) ~(wide & PM1_STS_W1C);
        break;
    case REG_PM1_EN:
        set_lane(&s->en, shift, v, PM1_EN_BITS);
        break;
    case REG_PM1_CNT:
        set_lane(&s->cnt, shift, v, CNT_BITS);
        if (wide & CNT_SLP_EN) {
            enter_sleep(s);
        }
        break;
    case REG_GPSTS:
        s->gpsts &= (uint16_t)~wide;
        break;
    case REG_GPEN:
        set_lane(&s->gpen, shift, v, 0xffff);
        break;
    }
}

static void pm_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
    Piix4Pm *s = opaque;
    QEMU_LOCK_GUARD(&s->lock);
    for (unsigned i = 0; i < size; i++) {
        pm_write_byte(s, (unsigned)off + i, (uint8_t)(v >> (8 * i)));
    }
    update_sci(s);
}

static const MemoryRegionOps pm_ops = {
    .read = pm_read, .write = pm_write, .valid_max = 4, .impl_max = 4,
};

/* ---- APM ports ---- */

static uint64_t apm_read(void *opaque, hwaddr off, unsigned size)
{
    Piix4Pm *s = opaque;
    QEMU_LOCK_GUARD(&s->lock);
    return off == 0 ? s->apmc : s->apms;
}

/* B2h: on a board with SMM its handler would act on the command; here the chip does. */
static void apm_write(void *opaque, hwaddr off, uint64_t v, unsigned size)
{
    Piix4Pm *s = opaque;
    QEMU_LOCK_GUARD(&s->lock);
    if (off == 1) {
        s->apms = (uint8_t)v;
        return;
    }
    s->apmc = (uint8_t)v;
    if (s->apmc == ACPI_ENABLE) {
        s->cnt |= CNT_SCI_EN;
    } else if (s->apmc == ACPI_DISABLE) {
        s->cnt &= (uint16_t)~CNT_SCI_EN;
    }
    update_sci(s);
}

static const MemoryRegionOps apm_ops = {
    .read = apm_read, .write = apm_write, .valid_max = 1, .impl_max = 1,
};

/* ---- Configuration ---- */

/* PMBA takes effect with PMIOSE (80h bit 0); it is no BAR and ignores the command register. */
static void pm_update_mapping(Piix4Pm *s)
{
    PCIBus *bus = pci_device_bus(&s->pd);
    QEMU_LOCK_GUARD(&s->map_lock);
    uint32_t base = pci_config_read(bus, s->pd.devfn, PIIX4_PMBASE, 4) & 0xffc0;
    bool on = pci_config_read(bus, s->pd.devfn, PIIX4_PMREGMISC, 1) & 1;
    int32_t want = on && base ? (int32_t)base : -1;
    if (want == s->mapped) {
        return;
    }
    memory_transaction_begin();
    if (s->mapped >= 0) {
        memory_region_del_subregion(bus->io, &s->pm_mr);
    }
    if (want >= 0) {
        memory_region_add_subregion(bus->io, (hwaddr)want, &s->pm_mr, 1);
    }
    s->mapped = want;
    memory_transaction_commit();
}

static void pm_config_write(PCIDevice *pd, unsigned addr, uint32_t value, unsigned len)
{
    if ((addr < PIIX4_PMBASE + 4 && addr + len > PIIX4_PMBASE) ||
        (addr <= PIIX4_PMREGMISC && addr + len > PIIX4_PMREGMISC)) {
        pm_update_mapping(container_of(pd, Piix4Pm, pd));
    }
}

static const PCIDeviceOps pm_pci_ops = { .config_write = pm_config_write };

void piix4_pm_set_sci(DeviceState *pm, IrqLine sci)
{
    piix4(pm)->sci = sci;
}

uint8_t piix4_pm_s4_val(DeviceState *pm)
{
    return piix4(pm)->s4_val;
}

bool piix4_pm_s4_enabled(DeviceState *pm)
{
    return !piix4(pm)->disable_s4;
}

bool piix4_pm_s3_enabled(DeviceState *pm)
{
    return !piix4(pm)->disable_s3;
}

static void pm_reset(DeviceState *dev)
{
    Piix4Pm *s = piix4(dev);
    pci_device_reset(&s->pd);
    s->pd.config[PIIX4_PMBASE] = 1; /* I/O space indicator */
    /* DEVACTB: APMC_EN reads as set, by which firmware knows that there is no SMM to set up. */
    s->pd.config[0x5b] = 0x02;
    pm_update_mapping(s);
    QEMU_LOCK_GUARD(&s->lock);
    if (runstate_is_wakeup()) {
        /* The status tells why it woke; ACPI mode lasts (ACPI 6.4, 16.3). */
        s->sts |= PM1_WAK;
        s->cnt &= CNT_SCI_EN;
    } else {
        s->sts = s->cnt = 0;
    }
    s->en = s->gpsts = s->gpen = 0;
    s->apmc = s->apms = 0;
    s->toggle_tick = (ticks_now() / PM_TOGGLE + 1) * PM_TOGGLE;
    update_sci(s);
}

static bool pm_realize(DeviceState *dev, Error **errp)
{
    Piix4Pm *s = piix4(dev);
    PCIDevice *pd = &s->pd;
    if (s->s4_val > 7 || s->s4_val == SLP_TYP_S5 || s->s4_val == SLP_TYP_S3) {
        error_setg(errp, "PIIX4_PM.s4_val=%u: must be 2-7", s->s4_val);
        return false;
    }
    qemu_mutex_init(&s->map_lock, LOCK_RANK_DEVICE, "PIIX4_PM map");
    qemu_mutex_init(&s->lock, LOCK_RANK_DEVICE_LO, "PIIX4_PM");
    s->mapped = -1;
    timer_init(&s->timer, event_loop_main(), CLOCK_TYPE_VIRTUAL, pm_timer_fired, s);
    pd->ops = &pm_pci_ops;
    pci_set_ids(pd, 0x8086, 0x7113, 3, PCI_CLASS_BRIDGE_OTHER, 0);
    pci_set_word(pd->config + PCI_STATUS, PCI_STATUS_DEVSEL_MEDIUM);
    pci_set_interrupt_pin(pd, 1);
    pd->config[PIIX4_PMBASE] = 1;
    pci_set_word(pd->wmask + PIIX4_PMBASE, 0xffc0);
    pd->wmask[PIIX4_PMREGMISC] = 1;
    memory_region_init_io(&s->pm_mr, &pm_ops, s, "piix4-pm", PM_IO_SIZE);
    memory_region_init_io(&s->apm_mr, &apm_ops, s, "apm-io", 2);
    memory_region_add_subregion(io_root(), ACPI_SMI_CMD, &s->apm_mr, 0);
    qemu_register_powerdown_notifier(power_button, s);
    return true;
}

/* What is due is in the state, and not found anew after a load. */
static void pm_pre_save(void *opaque)
{
    Piix4Pm *s = opaque;
    QEMU_LOCK_GUARD(&s->lock);
    update_tmr_sts(s);
}

static bool pm_post_load(void *opaque, int version, Error **errp)
{
    Piix4Pm *s = opaque;
    pm_update_mapping(s);
    QEMU_LOCK_GUARD(&s->lock);
    update_sci(s);
    return true;
}

static const Property pm_props[] = {
    PCI_PROPS(Piix4Pm, pd),
    DEFINE_PROP("disable_s3", PROP_UINT8, Piix4Pm, disable_s3, 0, "no suspend to RAM"),
    DEFINE_PROP("disable_s4", PROP_UINT8, Piix4Pm, disable_s4, 0, "no suspend to disk"),
    DEFINE_PROP("s4_val", PROP_UINT8, Piix4Pm, s4_val, 2, "SLP_TYP of suspend to disk"),
    DEFINE_PROP_END,
};
static const VMStateField pm_fields[] = {
    VMS_PCI_DEVICE(Piix4Pm, pd),
    VMS_FIELD(VMS_U16, Piix4Pm, sts, 1),
    VMS_FIELD(VMS_U16, Piix4Pm, en, 1),
    VMS_FIELD(VMS_U16, Piix4Pm, cnt, 1),
    VMS_FIELD(VMS_U16, Piix4Pm, gpsts, 1),
    VMS_FIELD(VMS_U16, Piix4Pm, gpen, 1),
    VMS_FIELD(VMS_U64, Piix4Pm, toggle_tick, 1),
    VMS_FIELD(VMS_U8, Piix4Pm, apmc, 1),
    VMS_FIELD(VMS_U8, Piix4Pm, apms, 1),
    VMS_END,
};
static const VMState pm_vmstate = {
    .name = "PIIX4_PM", .version = 1, .minimum_version = 1, .fields = pm_fields,
    .pre_save = pm_pre_save, .post_load = pm_post_load,
};
static const DeviceType pm_type = {
    .name = "PIIX4_PM",
    .desc = "power management",
    .bus = "pci",
    .instance_size = sizeof(Piix4Pm),
    .props = pm_props,
    .realize = pm_realize,
    .reset = pm_reset,
    .vmstate = &pm_vmstate,
};
DEVICE_TYPE(pm_type);
