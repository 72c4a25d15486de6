/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPU hot plug: the register block (hw/acpi/cpus.c), the methods of CPU devices, and the handler of
 * the event. The devices themselves, and CTFY, depend on the command line and are in another SSDT.
 */
DefinitionBlock ("ssdt-cpus.aml", "SSDT", 2, "QEMURT", "QEMURTHP", 1)
{
    External (\_SB.CTFY, MethodObj) /* CTFY (number, event): notifies a CPU's device */

    Scope (\_SB)
    {
        Device (CPHP)
        {
            Name (_HID, EisaId ("PNP0A06"))
            Name (_UID, "CPU hotplug")
            Name (_CRS, ResourceTemplate ()
            {
                IO (Decode16, 0xAF00, 0xAF00, 1, 12)
            })
            OperationRegion (CREG, SystemIO, 0xAF00, 12)
            Field (CREG, DWordAcc, NoLock, WriteAsZeros)
            {
                CSEL, 32, /* the CPU that the other registers are about */
                Offset (8),
                CDAT, 32  /* what the command asks for */
            }
            Field (CREG, ByteAcc, NoLock, WriteAsZeros)
            {
                Offset (4),
                CPEN, 1,  /* it is there */
                CINS, 1,  /* it has come; writing 1 takes note */
                CRMV, 1,  /* it is to go; writing 1 takes note */
                CEJ0, 1,  /* written with 1: it may go now */
                Offset (5),
                CCMD, 8   /* 0: select the next CPU that something happened to; 1, 2: CDAT takes _OST's words */
            }
            Mutex (CLCK, 0)
        }

        /* _STA of CPU Arg0 */
        Method (CSTA, 1, Serialized)
        {
            Acquire (\_SB.CPHP.CLCK, 0xFFFF)
            \_SB.CPHP.CSEL = Arg0
            Local0 = 0
            If (\_SB.CPHP.CPEN)
            {
                Local0 = 0x0F
            }
            Release (\_SB.CPHP.CLCK)
            Return (Local0)
        }

        /* _EJ0 of CPU Arg0 */
        Method (CEJT, 1, Serialized)
        {
            Acquire (\_SB.CPHP.CLCK, 0xFFFF)
            \_SB.CPHP.CSEL = Arg0
            \_SB.CPHP.CEJ0 = 1
            Release (\_SB.CPHP.CLCK)
        }

        /* _OST of CPU Arg0: source event, status */
        Method (COST, 3, Serialized)
        {
            Acquire (\_SB.CPHP.CLCK, 0xFFFF)
            \_SB.CPHP.CSEL = Arg0
            \_SB.CPHP.CCMD = 1
            \_SB.CPHP.CDAT = Arg1
            \_SB.CPHP.CCMD = 2
            \_SB.CPHP.CDAT = Arg2
            Release (\_SB.CPHP.CLCK)
        }

        Method (CSCN, 0, Serialized)
        {
            Acquire (\_SB.CPHP.CLCK, 0xFFFF)
            Local0 = 1
            While (Local0)
            {
                Local0 = 0
                \_SB.CPHP.CCMD = 0
                If (\_SB.CPHP.CINS)
                {
                    CTFY (\_SB.CPHP.CDAT, 1) /* device check */
                    \_SB.CPHP.CINS = 1
                    Local0 = 1
                }
                ElseIf (\_SB.CPHP.CRMV)
                {
                    CTFY (\_SB.CPHP.CDAT, 3) /* eject request */
                    \_SB.CPHP.CRMV = 1
                    Local0 = 1
                }
            }
            Release (\_SB.CPHP.CLCK)
        }
    }

    Method (\_GPE._E02, 0, NotSerialized)
    {
        \_SB.CSCN ()
    }
}
