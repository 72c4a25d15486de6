/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decoding of the system family: one table from mnemonic to handler, with how the operands lie and
 * which CPUID bit the instruction needs. What the guest's CPU lacks is nobody's, so it is #UD.
 */
#include "accel/tcg/sys.h"

/* Where operands go. */
typedef enum Form {
    FORM_NONE,
    FORM_RM,       /* op 0: register or memory -> rm; opsize is op 0's */
    FORM_REG_RM,   /* op 0: register -> reg; op 1 -> rm; opsize is op 0's */
    FORM_RM_REG,
    FORM_BASE,     /* RDFSBASE and the like: op 0 -> rm */
    FORM_WIDE,     /* opsize 8 with REX.W, else 4 */
    FORM_WIDTH,    /* opsize is the operand width */
    FORM_IMM,      /* op 0: immediate */
    FORM_IN,
    FORM_OUT,
    FORM_FAR_LOAD, /* LDS and the like: op 0 -> reg, op 1: memory */
} Form;

typedef struct SysInsn {
    uint16_t mnemonic;
    uint8_t form;
    bool ends;
    InsnFn *fn;
    uint8_t word; /* FeatureWord and bit the guest must have; bit 0: none */
    uint32_t bit;
    uint16_t aux16;
} SysInsn;

#define M(name)    ZYDIS_MNEMONIC_##name
#define ALWAYS     0, 0
#define CONTINUES  false
#define ENDS_BLOCK true

/* clang-format off */
static const SysInsn table[] = {
    { M(CLI), FORM_NONE, CONTINUES, sys_cli, ALWAYS },
    { M(STI), FORM_NONE, ENDS_BLOCK, sys_sti, ALWAYS },
    { M(HLT), FORM_NONE, ENDS_BLOCK, sys_hlt, ALWAYS },
    { M(INT), FORM_IMM, ENDS_BLOCK, sys_int_n, ALWAYS },
    { M(INT3), FORM_NONE, ENDS_BLOCK, sys_int3, ALWAYS },
    { M(INTO), FORM_NONE, ENDS_BLOCK, sys_into, ALWAYS },
    { M(INT1), FORM_NONE, ENDS_BLOCK, sys_int1, ALWAYS },
    { M(IRET), FORM_WIDTH, ENDS_BLOCK, sys_iret, ALWAYS },
    { M(IRETD), FORM_WIDTH, ENDS_BLOCK, sys_iret, ALWAYS },
    { M(IRETQ), FORM_WIDTH, ENDS_BLOCK, sys_iret, ALWAYS },
    { M(CLAC), FORM_NONE, CONTINUES, sys_clac, ALWAYS },
    { M(STAC), FORM_NONE, CONTINUES, sys_stac, ALWAYS },
    { M(SWAPGS), FORM_NONE, CONTINUES, sys_swapgs, ALWAYS },
    { M(RDMSR), FORM_NONE, CONTINUES, sys_rdmsr, ALWAYS },
    { M(WRMSR), FORM_NONE, ENDS_BLOCK, sys_wrmsr, ALWAYS },
    { M(CPUID), FORM_NONE, CONTINUES, sys_cpuid, ALWAYS },
    { M(RDTSC), FORM_NONE, CONTINUES, sys_rdtsc, X86F_TSC },
    { M(RDTSCP), FORM_NONE, CONTINUES, sys_rdtscp, X86F_RDTSCP },
    { M(RDPMC), FORM_NONE, ENDS_BLOCK, sys_rdpmc, ALWAYS },
    { M(RDPID), FORM_RM, CONTINUES, sys_rdpid, X86F_RDPID },
    { M(RDPKRU), FORM_NONE, CONTINUES, sys_rdpkru, ALWAYS },
    { M(WRPKRU), FORM_NONE, CONTINUES, sys_wrpkru, ALWAYS },
    { M(MONITOR), FORM_NONE, CONTINUES, sys_monitor, X86F_MONITOR },
    { M(MWAIT), FORM_NONE, ENDS_BLOCK, sys_mwait, X86F_MONITOR },
    { M(IN), FORM_IN, CONTINUES, sys_in, ALWAYS },
    /* A port may change the map of memory, raise a line, reset. */
    { M(OUT), FORM_OUT, ENDS_BLOCK, sys_out, ALWAYS },
    { M(VMCALL), FORM_NONE, ENDS_BLOCK, sys_hypercall, X86F_HYPERVISOR },
    { M(VMMCALL), FORM_NONE, ENDS_BLOCK, sys_hypercall, X86F_HYPERVISOR },
    { M(SYSCALL), FORM_NONE, ENDS_BLOCK, sys_syscall, X86F_SYSCALL },
    { M(SYSRET), FORM_WIDE, ENDS_BLOCK, sys_sysret, X86F_SYSCALL },
    { M(SYSENTER), FORM_NONE, ENDS_BLOCK, sys_sysenter, X86F_SEP },
    { M(SYSEXIT), FORM_WIDE, ENDS_BLOCK, sys_sysexit, X86F_SEP },
    { M(RDFSBASE), FORM_BASE, CONTINUES, sys_rdbase, X86F_FSGSBASE, R_FS },
    { M(RDGSBASE), FORM_BASE, CONTINUES, sys_rdbase, X86F_FSGSBASE, R_GS },
    { M(WRFSBASE), FORM_BASE, CONTINUES, sys_wrbase, X86F_FSGSBASE, R_FS },
    { M(WRGSBASE), FORM_BASE, CONTINUES, sys_wrbase, X86F_FSGSBASE, R_GS },
    { M(CLTS), FORM_NONE, ENDS_BLOCK, sys_clts, ALWAYS },
    { M(LMSW), FORM_RM, ENDS_BLOCK, sys_lmsw, ALWAYS },
    { M(SMSW), FORM_RM, CONTINUES, sys_smsw, ALWAYS },
    { M(XGETBV), FORM_NONE, CONTINUES, sys_xgetbv, X86F_XSAVE },
    { M(XSETBV), FORM_NONE, ENDS_BLOCK, sys_xsetbv, X86F_XSAVE },
    { M(INVLPG), FORM_RM, ENDS_BLOCK, sys_invlpg, ALWAYS },
    { M(INVPCID), FORM_REG_RM, ENDS_BLOCK, sys_invpcid, X86F_INVPCID },
    { M(INVD), FORM_NONE, CONTINUES, sys_invd, ALWAYS },
    { M(WBINVD), FORM_NONE, CONTINUES, sys_invd, ALWAYS },
    { M(LGDT), FORM_WIDTH, CONTINUES, sys_lgdt, ALWAYS },
    { M(LIDT), FORM_WIDTH, CONTINUES, sys_lidt, ALWAYS },
    { M(SGDT), FORM_WIDTH, CONTINUES, sys_sgdt, ALWAYS },
    { M(SIDT), FORM_WIDTH, CONTINUES, sys_sidt, ALWAYS },
    { M(LLDT), FORM_RM, CONTINUES, sys_lldt, ALWAYS },
    { M(LTR), FORM_RM, CONTINUES, sys_ltr, ALWAYS },
    { M(SLDT), FORM_RM, CONTINUES, sys_sldt, ALWAYS },
    { M(STR), FORM_RM, CONTINUES, sys_str, ALWAYS },
    { M(LAR), FORM_REG_RM, CONTINUES, sys_lar, ALWAYS },
    { M(LSL), FORM_REG_RM, CONTINUES, sys_lsl, ALWAYS },
    { M(VERR), FORM_RM, CONTINUES, sys_verr, ALWAYS },
    { M(VERW), FORM_RM, CONTINUES, sys_verw, ALWAYS },
    { M(ARPL), FORM_RM_REG, CONTINUES, sys_arpl, ALWAYS },
    { M(LES), FORM_FAR_LOAD, CONTINUES, sys_load_far, ALWAYS, R_ES },
    { M(LDS), FORM_FAR_LOAD, CONTINUES, sys_load_far, ALWAYS, R_DS },
    { M(LFS), FORM_FAR_LOAD, CONTINUES, sys_load_far, ALWAYS, R_FS },
    { M(LGS), FORM_FAR_LOAD, CONTINUES, sys_load_far, ALWAYS, R_GS },
    { M(LSS), FORM_FAR_LOAD, ENDS_BLOCK, sys_load_far, ALWAYS, R_SS },
};
/* clang-format on */

static bool is_mem(const Decode *d, unsigned n)
{
    return d->op[n].type == ZYDIS_OPERAND_TYPE_MEMORY;
}

static uint8_t op_reg(const Decode *d, unsigned n)
{
    return (uint8_t)ZydisRegisterGetId(d->op[n].reg.value);
}

static ZydisRegisterClass op_class(const Decode *d, unsigned n)
{
    return d->op[n].type == ZYDIS_OPERAND_TYPE_REGISTER
               ? ZydisRegisterGetClass(d->op[n].reg.value)
               : ZYDIS_REGCLASS_INVALID;
}

static void put_rm(const Decode *d, Insn *out, unsigned n)
{
    if (is_mem(d, n)) {
        out->aux8 |= SYS_MEM;
    } else {
        out->rm = op_reg(d, n);
    }
}

static void put_port(const Decode *d, Insn *out, unsigned n)
{
    if (d->op[n].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        out->imm = d->op[n].imm.value.u & 0xff;
    } else {
        out->aux8 = SYS_DX;
    }
}

static void put_operands(const Decode *d, Form form, Insn *out)
{
    out->opsize = (uint8_t)(d->op[0].size / 8);
    switch (form) {
    case FORM_RM:
    case FORM_BASE:
        put_rm(d, out, 0);
        break;
    case FORM_REG_RM:
        out->reg = op_reg(d, 0);
        put_rm(d, out, 1);
        break;
    case FORM_RM_REG:
        out->reg = op_reg(d, 1);
        put_rm(d, out, 0);
        break;
    case FORM_FAR_LOAD:
        out->reg = op_reg(d, 0);
        break;
    case FORM_WIDE:
        out->opsize = d->zi.raw.rex.W ? 8 : 4;
        break;
    case FORM_WIDTH:
        out->opsize = d->zi.operand_width / 8;
        break;
    case FORM_IMM:
        out->imm = d->op[0].imm.value.u;
        break;
    case FORM_IN:
        put_port(d, out, 1);
        break;
    case FORM_OUT:
        put_port(d, out, 0);
        out->opsize = (uint8_t)(d->op[1].size / 8);
        break;
    case FORM_NONE:
        break;
    }
}

/* MOV with a segment, control or debug register. */
static bool decode_mov(Decode *d, Insn *out)
{
    unsigned special = 2;
    ZydisRegisterClass class = ZYDIS_REGCLASS_INVALID;

    for (unsigned n = 0; n < 2; n++) {
        ZydisRegisterClass k = op_class(d, n);

        if (k == ZYDIS_REGCLASS_SEGMENT || k == ZYDIS_REGCLASS_CONTROL ||
            k == ZYDIS_REGCLASS_DEBUG) {
            special = n;
            class = k;
        }
    }
    if (special == 2) {
        return false;
    }
    out->reg = op_reg(d, special);
    put_rm(d, out, 1 - special);
    out->opsize = d->bits == 64 ? 8 : 4;
    if (class == ZYDIS_REGCLASS_SEGMENT) {
        out->opsize = (uint8_t)(d->op[1 - special].size / 8);
        out->fn = special == 0 ? sys_mov_to_seg : sys_mov_from_seg;
        d->ends_block |= special == 0 && out->reg == R_SS;
    } else if (class == ZYDIS_REGCLASS_CONTROL) {
        out->fn = special == 0 ? sys_mov_to_cr : sys_mov_from_cr;
        d->ends_block |= special == 0;
    } else {
        out->fn = special == 0 ? sys_mov_to_dr : sys_mov_from_dr;
        d->ends_block |= special == 0;
    }
    return true;
}

static bool decode_push_pop(Decode *d, Insn *out, bool pop)
{
    if (op_class(d, 0) != ZYDIS_REGCLASS_SEGMENT) {
        return false;
    }
    out->reg = op_reg(d, 0);
    out->opsize = d->zi.operand_width / 8;
    out->fn = pop ? sys_pop_seg : sys_push_seg;
    d->ends_block |= pop && out->reg == R_SS;
    return true;
}

static bool decode_far(Decode *d, Insn *out)
{
    if (d->zi.meta.branch_type != ZYDIS_BRANCH_TYPE_FAR) {
        return false;
    }
    d->ends_block = true;
    if (d->zi.mnemonic == ZYDIS_MNEMONIC_RET) {
        out->opsize = d->zi.operand_width / 8;
        if (d->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
            out->imm = d->op[0].imm.value.u & 0xffff;
        }
        out->fn = sys_far_ret;
        return true;
    }
    if (is_mem(d, 0)) {
        out->aux8 = SYS_MEM;
        out->opsize = (uint8_t)((d->op[0].size - 16) / 8);
    } else {
        out->imm = d->op[0].ptr.offset;
        out->aux16 = d->op[0].ptr.segment;
        out->opsize = d->zi.operand_width / 8;
    }
    out->fn = d->zi.mnemonic == ZYDIS_MNEMONIC_CALL ? sys_far_call : sys_far_jmp;
    return true;
}

bool decode_system(Decode *d, Insn *out)
{
    switch (d->zi.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
        return decode_mov(d, out);
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_POP:
        return decode_push_pop(d, out, d->zi.mnemonic == ZYDIS_MNEMONIC_POP);
    case ZYDIS_MNEMONIC_JMP:
    case ZYDIS_MNEMONIC_CALL:
    case ZYDIS_MNEMONIC_RET:
        return decode_far(d, out);
    default:
        break;
    }
    for (unsigned n = 0; n < ARRAY_SIZE(table); n++) {
        const SysInsn *s = &table[n];

        if (s->mnemonic != (unsigned)d->zi.mnemonic) {
            continue;
        }
        if (s->bit && !x86_has(d->c, (FeatureWord)s->word, s->bit)) {
            return false;
        }
        put_operands(d, (Form)s->form, out);
        out->fn = s->fn;
        out->aux16 = s->aux16;
        d->ends_block |= s->ends;
        return true;
    }
    return false;
}
