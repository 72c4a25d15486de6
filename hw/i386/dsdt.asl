/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DSDT of the "pc" board: the PCI root with its interrupt routing, and the devices every machine
 * has. CPUs, HPET, serial ports, S3 and S4 depend on the command line and come in an SSDT.
 */
DefinitionBlock ("dsdt.aml", "DSDT", 2, "QEMURT", "QEMURTPC", 1)
{
    Name (\_S5, Package () { 0, 0, 0, 0 })

    Scope (\_SB)
    {
        Device (PCI0)
        {
            Name (_HID, EisaId ("PNP0A03"))
            Name (_UID, 0)
            Name (_BBN, 0)
            Name (_CRS, ResourceTemplate ()
            {
                WordBusNumber (ResourceProducer, MinFixed, MaxFixed, PosDecode,
                    0, 0, 0xFF, 0, 0x100)
                IO (Decode16, 0x0CF8, 0x0CF8, 1, 8)
                WordIO (ResourceProducer, MinFixed, MaxFixed, PosDecode, EntireRange,
                    0, 0, 0x0CF7, 0, 0x0CF8)
                WordIO (ResourceProducer, MinFixed, MaxFixed, PosDecode, EntireRange,
                    0, 0x0D00, 0xFFFF, 0, 0xF300)
                DWordMemory (ResourceProducer, PosDecode, MinFixed, MaxFixed, Cacheable, ReadWrite,
                    0, 0x000A0000, 0x000BFFFF, 0, 0x00020000)
                DWordMemory (ResourceProducer, PosDecode, MinFixed, MaxFixed, NonCacheable,
                    ReadWrite, 0, 0xC0000000, 0xFEBFFFFF, 0, 0x3EC00000)
            })
            /* Pin p of slot s is wired to PIRQ (s - 1 + p) & 3; the SCI of slot 1 is IRQ 9. */
            Name (_PRT, Package ()
            {
                Package () { 0x0000FFFF, 0, LNKD, 0 }, Package () { 0x0000FFFF, 1, LNKA, 0 },
                Package () { 0x0000FFFF, 2, LNKB, 0 }, Package () { 0x0000FFFF, 3, LNKC, 0 },
                Package () { 0x0001FFFF, 0, 0, 9 }, Package () { 0x0001FFFF, 1, LNKB, 0 },
                Package () { 0x0001FFFF, 2, LNKC, 0 }, Package () { 0x0001FFFF, 3, LNKD, 0 },
                Package () { 0x0002FFFF, 0, LNKB, 0 }, Package () { 0x0002FFFF, 1, LNKC, 0 },
                Package () { 0x0002FFFF, 2, LNKD, 0 }, Package () { 0x0002FFFF, 3, LNKA, 0 },
                Package () { 0x0003FFFF, 0, LNKC, 0 }, Package () { 0x0003FFFF, 1, LNKD, 0 },
                Package () { 0x0003FFFF, 2, LNKA, 0 }, Package () { 0x0003FFFF, 3, LNKB, 0 },
                Package () { 0x0004FFFF, 0, LNKD, 0 }, Package () { 0x0004FFFF, 1, LNKA, 0 },
                Package () { 0x0004FFFF, 2, LNKB, 0 }, Package () { 0x0004FFFF, 3, LNKC, 0 },
                Package () { 0x0005FFFF, 0, LNKA, 0 }, Package () { 0x0005FFFF, 1, LNKB, 0 },
                Package () { 0x0005FFFF, 2, LNKC, 0 }, Package () { 0x0005FFFF, 3, LNKD, 0 },
                Package () { 0x0006FFFF, 0, LNKB, 0 }, Package () { 0x0006FFFF, 1, LNKC, 0 },
                Package () { 0x0006FFFF, 2, LNKD, 0 }, Package () { 0x0006FFFF, 3, LNKA, 0 },
                Package () { 0x0007FFFF, 0, LNKC, 0 }, Package () { 0x0007FFFF, 1, LNKD, 0 },
                Package () { 0x0007FFFF, 2, LNKA, 0 }, Package () { 0x0007FFFF, 3, LNKB, 0 },
                Package () { 0x0008FFFF, 0, LNKD, 0 }, Package () { 0x0008FFFF, 1, LNKA, 0 },
                Package () { 0x0008FFFF, 2, LNKB, 0 }, Package () { 0x0008FFFF, 3, LNKC, 0 },
                Package () { 0x0009FFFF, 0, LNKA, 0 }, Package () { 0x0009FFFF, 1, LNKB, 0 },
                Package () { 0x0009FFFF, 2, LNKC, 0 }, Package () { 0x0009FFFF, 3, LNKD, 0 },
                Package () { 0x000AFFFF, 0, LNKB, 0 }, Package () { 0x000AFFFF, 1, LNKC, 0 },
                Package () { 0x000AFFFF, 2, LNKD, 0 }, Package () { 0x000AFFFF, 3, LNKA, 0 },
                Package () { 0x000BFFFF, 0, LNKC, 0 }, Package () { 0x000BFFFF, 1, LNKD, 0 },
                Package () { 0x000BFFFF, 2, LNKA, 0 }, Package () { 0x000BFFFF, 3, LNKB, 0 },
                Package () { 0x000CFFFF, 0, LNKD, 0 }, Package () { 0x000CFFFF, 1, LNKA, 0 },
                Package () { 0x000CFFFF, 2, LNKB, 0 }, Package () { 0x000CFFFF, 3, LNKC, 0 },
                Package () { 0x000DFFFF, 0, LNKA, 0 }, Package () { 0x000DFFFF, 1, LNKB, 0 },
                Package () { 0x000DFFFF, 2, LNKC, 0 }, Package () { 0x000DFFFF, 3, LNKD, 0 },
                Package () { 0x000EFFFF, 0, LNKB, 0 }, Package () { 0x000EFFFF, 1, LNKC, 0 },
                Package () { 0x000EFFFF, 2, LNKD, 0 }, Package () { 0x000EFFFF, 3, LNKA, 0 },
                Package () { 0x000FFFFF, 0, LNKC, 0 }, Package () { 0x000FFFFF, 1, LNKD, 0 },
                Package () { 0x000FFFFF, 2, LNKA, 0 }, Package () { 0x000FFFFF, 3, LNKB, 0 },
                Package () { 0x0010FFFF, 0, LNKD, 0 }, Package () { 0x0010FFFF, 1, LNKA, 0 },
                Package () { 0x0010FFFF, 2, LNKB, 0 }, Package () { 0x0010FFFF, 3, LNKC, 0 },
                Package () { 0x0011FFFF, 0, LNKA, 0 }, Package () { 0x0011FFFF, 1, LNKB, 0 },
                Package () { 0x0011FFFF, 2, LNKC, 0 }, Package () { 0x0011FFFF, 3, LNKD, 0 },
                Package () { 0x0012FFFF, 0, LNKB, 0 }, Package () { 0x0012FFFF, 1, LNKC, 0 },
                Package () { 0x0012FFFF, 2, LNKD, 0 }, Package () { 0x0012FFFF, 3, LNKA, 0 },
                Package () { 0x0013FFFF, 0, LNKC, 0 }, Package () { 0x0013FFFF, 1, LNKD, 0 },
                Package () { 0x0013FFFF, 2, LNKA, 0 }, Package () { 0x0013FFFF, 3, LNKB, 0 },
                Package () { 0x0014FFFF, 0, LNKD, 0 }, Package () { 0x0014FFFF, 1, LNKA, 0 },
                Package () { 0x0014FFFF, 2, LNKB, 0 }, Package () { 0x0014FFFF, 3, LNKC, 0 },
                Package () { 0x0015FFFF, 0, LNKA, 0 }, Package () { 0x0015FFFF, 1, LNKB, 0 },
                Package () { 0x0015FFFF, 2, LNKC, 0 }, Package () { 0x0015FFFF, 3, LNKD, 0 },
                Package () { 0x0016FFFF, 0, LNKB, 0 }, Package () { 0x0016FFFF, 1, LNKC, 0 },
                Package () { 0x0016FFFF, 2, LNKD, 0 }, Package () { 0x0016FFFF, 3, LNKA, 0 },
                Package () { 0x0017FFFF, 0, LNKC, 0 }, Package () { 0x0017FFFF, 1, LNKD, 0 },
                Package () { 0x0017FFFF, 2, LNKA, 0 }, Package () { 0x0017FFFF, 3, LNKB, 0 },
                Package () { 0x0018FFFF, 0, LNKD, 0 }, Package () { 0x0018FFFF, 1, LNKA, 0 },
                Package () { 0x0018FFFF, 2, LNKB, 0 }, Package () { 0x0018FFFF, 3, LNKC, 0 },
                Package () { 0x0019FFFF, 0, LNKA, 0 }, Package () { 0x0019FFFF, 1, LNKB, 0 },
                Package () { 0x0019FFFF, 2, LNKC, 0 }, Package () { 0x0019FFFF, 3, LNKD, 0 },
                Package () { 0x001AFFFF, 0, LNKB, 0 }, Package () { 0x001AFFFF, 1, LNKC, 0 },
                Package () { 0x001AFFFF, 2, LNKD, 0 }, Package () { 0x001AFFFF, 3, LNKA, 0 },
                Package () { 0x001BFFFF, 0, LNKC, 0 }, Package () { 0x001BFFFF, 1, LNKD, 0 },
                Package () { 0x001BFFFF, 2, LNKA, 0 }, Package () { 0x001BFFFF, 3, LNKB, 0 },
                Package () { 0x001CFFFF, 0, LNKD, 0 }, Package () { 0x001CFFFF, 1, LNKA, 0 },
                Package () { 0x001CFFFF, 2, LNKB, 0 }, Package () { 0x001CFFFF, 3, LNKC, 0 },
                Package () { 0x001DFFFF, 0, LNKA, 0 }, Package () { 0x001DFFFF, 1, LNKB, 0 },
                Package () { 0x001DFFFF, 2, LNKC, 0 }, Package () { 0x001DFFFF, 3, LNKD, 0 },
                Package () { 0x001EFFFF, 0, LNKB, 0 }, Package () { 0x001EFFFF, 1, LNKC, 0 },
                Package () { 0x001EFFFF, 2, LNKD, 0 }, Package () { 0x001EFFFF, 3, LNKA, 0 },
                Package () { 0x001FFFFF, 0, LNKC, 0 }, Package () { 0x001FFFFF, 1, LNKD, 0 },
                Package () { 0x001FFFFF, 2, LNKA, 0 }, Package () { 0x001FFFFF, 3, LNKB, 0 }
            })

            Device (ISA)
            {
                Name (_ADR, 0x00010000)
                OperationRegion (P40C, PCI_Config, 0x60, 4)

                Device (PIC)
                {
                    Name (_HID, EisaId ("PNP0000"))
                    Name (_CRS, ResourceTemplate ()
                    {
                        IO (Decode16, 0x20, 0x20, 0, 2)
                        IO (Decode16, 0xA0, 0xA0, 0, 2)
                        IO (Decode16, 0x4D0, 0x4D0, 0, 2)
                        IRQNoFlags () { 2 }
                    })
                }
                Device (RTC)
                {
                    Name (_HID, EisaId ("PNP0B00"))
                    Name (_CRS, ResourceTemplate ()
                    {
                        IO (Decode16, 0x70, 0x70, 0, 2)
                        IRQNoFlags () { 8 }
                    })
                }
                Device (FPU)
                {
                    Name (_HID, EisaId ("PNP0C04"))
                    Name (_CRS, ResourceTemplate ()
                    {
                        IO (Decode16, 0xF0, 0xF0, 0, 2)
                        IRQNoFlags () { 13 }
                    })
                }
                Device (KBD)
                {
                    Name (_HID, EisaId ("PNP0303"))
                    Name (_CRS, ResourceTemplate ()
                    {
                        IO (Decode16, 0x60, 0x60, 0, 1)
                        IO (Decode16, 0x64, 0x64, 0, 1)
                        IRQNoFlags () { 1 }
                    })
                }
                Device (MOU)
                {
                    Name (_HID, EisaId ("PNP0F13"))
                    Name (_CRS, ResourceTemplate ()
                    {
                        IRQNoFlags () { 12 }
                    })
                }
                Device (SYSR)
                {
                    Name (_HID, EisaId ("PNP0C02"))
                    Name (_UID, 1)
                    Name (_CRS, ResourceTemplate ()
                    {
                        IO (Decode16, 0x80, 0x80, 0, 1)
                        IO (Decode16, 0x92, 0x92, 0, 1)
                        IO (Decode16, 0xB2, 0xB2, 0, 2)
                        IO (Decode16, 0x600, 0x600, 0, 0x40)
                    })
                }
            }
        }

        /* Firmware configuration device; Linux finds it by this identification. */
        Device (FWCF)
        {
            Name (_HID, "QEMU0002")
            Name (_STA, 0x0B)
            Name (_CRS, ResourceTemplate ()
            {
                IO (Decode16, 0x510, 0x510, 1, 12)
            })
        }
    }

    /* PIRQ links: an ISA interrupt each, chosen in the ISA bridge's configuration space. */
    Scope (\_SB)
    {
        Field (\_SB.PCI0.ISA.P40C, ByteAcc, NoLock, Preserve)
        {
            PRQ0, 8, PRQ1, 8, PRQ2, 8, PRQ3, 8
        }
        Method (LSTA, 1, NotSerialized)
        {
            If (Arg0 & 0x80)
            {
                Return (0x09)
            }
            Return (0x0B)
        }
        Method (LCRS, 1, Serialized)
        {
            Name (BUF0, ResourceTemplate ()
            {
                Interrupt (ResourceConsumer, Level, ActiveHigh, Shared) { 0 }
            })
            CreateDWordField (BUF0, 5, IRQW)
            If (!(Arg0 & 0x80))
            {
                IRQW = Arg0
            }
            Return (BUF0)
        }

        Device (LNKA)
        {
            Name (_HID, EisaId ("PNP0C0F"))
            Name (_UID, 0)
            Name (_PRS, ResourceTemplate ()
            {
                Interrupt (ResourceConsumer, Level, ActiveHigh, Shared) { 5, 10, 11 }
            })
            Method (_STA, 0, NotSerialized)
            {
                Return (LSTA (PRQ0))
            }
            Method (_DIS, 0, NotSerialized)
            {
                PRQ0 |= 0x80
            }
            Method (_CRS, 0, NotSerialized)
            {
                Return (LCRS (PRQ0))
            }
            Method (_SRS, 1, NotSerialized)
            {
                CreateDWordField (Arg0, 5, IRQN)
                PRQ0 = IRQN
            }
        }

        Device (LNKB)
        {
            Name (_HID, EisaId ("PNP0C0F"))
            Name (_UID, 1)
            Name (_PRS, ResourceTemplate ()
            {
                Interrupt (ResourceConsumer, Level, ActiveHigh, Shared) { 5, 10, 11 }
            })
            Method (_STA, 0, NotSerialized)
            {
                Return (LSTA (PRQ1))
            }
            Method (_DIS, 0, NotSerialized)
            {
                PRQ1 |= 0x80
            }
            Method (_CRS, 0, NotSerialized)
            {
                Return (LCRS (PRQ1))
            }
            Method (_SRS, 1, NotSerialized)
            {
                CreateDWordField (Arg0, 5, IRQN)
                PRQ1 = IRQN
            }
        }

        Device (LNKC)
        {
            Name (_HID, EisaId ("PNP0C0F"))
            Name (_UID, 2)
            Name (_PRS, ResourceTemplate ()
            {
                Interrupt (ResourceConsumer, Level, ActiveHigh, Shared) { 5, 10, 11 }
            })
            Method (_STA, 0, NotSerialized)
            {
                Return (LSTA (PRQ2))
            }
            Method (_DIS, 0, NotSerialized)
            {
                PRQ2 |= 0x80
            }
            Method (_CRS, 0, NotSerialized)
            {
                Return (LCRS (PRQ2))
            }
            Method (_SRS, 1, NotSerialized)
            {
                CreateDWordField (Arg0, 5, IRQN)
                PRQ2 = IRQN
            }
        }

        Device (LNKD)
        {
            Name (_HID, EisaId ("PNP0C0F"))
            Name (_UID, 3)
            Name (_PRS, ResourceTemplate ()
            {
                Interrupt (ResourceConsumer, Level, ActiveHigh, Shared) { 5, 10, 11 }
            })
            Method (_STA, 0, NotSerialized)
            {
                Return (LSTA (PRQ3))
            }
            Method (_DIS, 0, NotSerialized)
            {
                PRQ3 |= 0x80
            }
            Method (_CRS, 0, NotSerialized)
            {
                Return (LCRS (PRQ3))
            }
            Method (_SRS, 1, NotSerialized)
            {
                CreateDWordField (Arg0, 5, IRQN)
                PRQ3 = IRQN
            }
        }
    }
}
