# SPDX-License-Identifier: GPL-2.0-or-later
#
# The one table of command line options. scripts/hxtool.py makes of it the parser's table, the text
# of -help and the manual page.
#
#   = TITLE                        starts a section
#   -name|-alias ARGUMENT          starts an option
#   @group NAME                    the value is parsed into this option group (qemu-config.c)
#   @optional                      the argument may be left out altogether
#   > text                         a line of -help
#   other lines                    the manual page; an empty line starts a paragraph,
#                                  "* WORD: text" an item
#   % TITLE                        a section of the manual page alone, after all options; in its text
#                                  lines indented by four stay as they are

= Standard options

-help|-h
> show this help and exit
Print the options with one line each, and exit.

-version
> show the version and exit
Print the version, and exit.

-machine|-M [type=]NAME[,PROP=VALUE...]
@group machine
> choose the machine ('-machine help' lists them)
>   accel=A[:B...]            accelerators, the first that works is used
>   kernel-irqchip=on|off|split
>                             where KVM's interrupt chips are
>   hpet=on|off, acpi=on|off, pit=on|off
>                             leave these out of the machine
Choose the machine and its properties. Several uses add up. Names of properties may be spelt with "_" for "-".

* accel=A:B: the accelerators to try, in this order: kvm, tcg or qtest.
* kernel-irqchip=on|off|split: with KVM, interrupt controllers in the kernel, all in this process, or only the local APICs in the kernel.
* hpet=on|off: whether the machine has a high precision event timer.
* acpi=on|off: whether the machine has ACPI tables.
* pit=on|off: whether the machine has an interval timer (8254) and the speaker's port 61h, which depends on it; without them the guest needs the local APIC's timer or the HPET, and under tcg a CPU model of Intel's (-cpu kvm64), as Linux otherwise measures its clock by them.
* mem-merge=on|off: whether the host may merge equal pages of guest memory (KSM); off unless said. Ignored, with a warning, while memory is locked.
* dump-guest-core=on|off: whether guest memory is part of a core dump.
* memory-backend=ID: name of the guest's main memory.
* usb=off, smm=off|auto, vmport=off|auto: accepted, as the machine has none of these; on is refused.
* graphics=on|off: accepted; there is no display that firmware could write to.
* kernel=FILE, initrd=FILE, append=TEXT, firmware=FILE: the same as the options -kernel, -initrd, -append and -bios.

-accel NAME[,PROP=VALUE...]
@group accel
> choose an accelerator ('-accel help' lists them);
> given again, the next is tried if the one before fails
Choose how guest code is run: kvm (the host's processor), tcg (in software) or qtest (not at all; for tests of devices). May be given several times: the first that works is used. Without it: tcg, or kvm in a program that was built without tcg. Both need an x86-64 host. "-accel NAME,help" lists its properties.

* thread=multi: tcg: each CPU has a thread of its own, and nothing else can be had: single is refused.
* one-insn=on|off: tcg: interpret every instruction, translate nothing. Off if left out.
* exact-flags=on|off: tcg: keep the flags register exact at every instruction that may fault, which costs time. Off if left out.
* host-without=FEATURE[:FEATURE...]|all: tcg: for tests: behave as if the host's processor lacked these features (avx:avx2:bmi2, named as with -cpu), or all that x86-64 began without. The guest gets none of them, and no host instruction of theirs runs.
* state-log=FILE, state-every=N: tcg, with -icount: write a line "COUNT RIP HASH" for the state of the CPU after every N instructions (10000); tests/linux/lockstep.py compares two of them.
* state-from=N: tcg: the first line is that of this count.
* state-ram-every=N: tcg: every N lines one tells of RAM too.
* state-blocks=on: tcg: instead, a line with all registers and the code before each block.
* state-flip=N: tcg: flip a bit of R12 after N instructions, to see that it is found.
* kernel-irqchip=on|off|split: kvm: as in -machine.
* kvm-shadow-mem=SIZE: kvm: how much memory the kernel may use for shadow page tables.
* dirty-ring-size=0: kvm: dirty pages are found by bitmap; no ring is implemented.
* tb-size=MIB: tcg: memory for translated code, for all vCPUs together, and as much again for decoded code. Default, and what 0 means: 40 for each of up to six vCPUs, 240 for more. Each has from 2 to 2048; a size that would give it less or more is changed, with a warning.

-enable-kvm
> the same as -accel kvm
The same as "-accel kvm".

-cpu MODEL[,+FLAG][,-FLAG][,FLAG=on|off...]
> choose the CPU model ('-cpu help' lists them)
Choose the CPU model and switch single features on or off.

* check=on|off, enforce=on|off: what the accelerator or the host cannot give is left out with a warning (check, the default), or refused (enforce).
* vendor=, family=, model=, stepping=, model-id=, level=, xlevel=: what CPUID says of identity and size.
* phys-bits=N, host-phys-bits=on|off: width of physical addresses (40 by default).
* tsc-frequency=HZ: rate of the time-stamp counter. Under tcg it is 1 GHz on every host otherwise.
* kvm=off, tcg-cpuid=off: no hypervisor leaves. pmu=on|off: performance counters (kvm only). migratable=on|off: leave out what ties a guest to its host (invtsc under kvm). host-cache-info=on|off, l3-cache=on|off: description of caches.

-smp [cpus=]N[,maxcpus=N][,sockets=N][,dies=N][,clusters=1][,cores=N][,threads=N]
@group smp-opts
> number of CPUs and how they are arranged
Set the number of CPUs at start (1 to 255) and their topology. clusters must be 1. What is left out is computed; cores are preferred over sockets. The product of sockets, dies, cores and threads must be maxcpus. The places that have no CPU at start can get one later, by the monitor's device_add, and lose it again by device_del.

-m [size=]SIZE[,slots=0][,maxmem=SIZE]
@group memory
> size of the guest's memory, in MiB or with a suffix
Set the size of the guest's memory. Without a suffix (K, M, G, T) the number is in MiB; a fraction such as 1.5G is accepted. No memory can be plugged in later: slots must be 0, and maxmem the same as size.

-name [guest=]NAME[,process=NAME][,debug-threads=on|off]
@group name
> name of the guest and of the process
Set the guest's name, which management tools show, and the process's name. Threads always have names; debug-threads is accepted for compatibility.

-uuid UUID
> the guest's UUID
Set the system's UUID, in the form 8-4-4-4-12 of hexadecimal digits.

-boot [order=LETTERS][,once=LETTERS][,menu=on|off][,splash-time=MS][,strict=on|off]
@group boot-opts
> order of boot devices for the firmware
Tell the firmware in which order to try boot devices: a, b (floppies), c (disk), d (CD-ROM), n (network). There are none of them yet, so that it has little to try.

* once=LETTERS: the order for the first boot only.
* menu=on, splash-time=MS: the firmware shows its boot menu, and waits so long for a key.
* strict=on: the firmware stops if nothing that was named boots.

-device DRIVER[,PROP=VALUE...]
@group device
> add a device ('-device help' lists them)
Add a device. "-device DRIVER,help" lists its properties. DRIVER may be the model of the CPUs (qemu64-x86_64-cpu,socket-id=1,core-id=0,thread-id=0), for one more than -smp has at start. The value may be a JSON object.

-global DRIVER.PROP=VALUE
@group global
> change the default of a device's property
Set a property of every device of a type that does not set it itself.

-object TYPE,id=ID[,PROP=VALUE...]
@group object
> make an object ('-object help' lists the types)
Make an object that other options name. "-object TYPE,help" lists its properties. The value may be a JSON object.

* secret: a password or key: data=TEXT or file=FILE, format=raw|base64.
* memory-backend-ram, memory-backend-file, memory-backend-memfd: memory of size=SIZE for -machine memory-backend=ID; share=on|off, prealloc=on|off, merge=on|off, dump=on|off; mem-path=FILE for a file, hugetlb=on|off and seal=on|off for a memfd.

-nodefaults
> no default serial port, monitor or other default devices
Do not make the devices that a machine has without being asked.

-no-user-config
> read no configuration files of the user
Accepted for compatibility: no configuration file is read unless -readconfig names it.

-readconfig FILE
> read options from a file
Read option groups from a file: sections "[group]" or "[group "id"]", each followed by lines of the form key = "value".

= Realtime

-realtime [maxprio=N][,policy=rr|fifo|other][,mlock=on|off|on-fault][,PROP=VALUE...]
@group realtime
@optional
> run the machine with bounded latency: event threads with
> priority N, CPUs with N-1, memory locked
Run the machine's threads under a realtime scheduling policy and lock memory. Everything is checked before the guest runs; what the host does not permit ends the program with a message that says how to permit it.

* maxprio=N: from 2 to 99. Threads that serve devices get priority N, those that run CPUs N-1, so that what answers a CPU always outranks it. Without it no policy is changed.
* policy=rr|fifo: the policy; rr if left out. policy=other, in a named profile: none is realtime.
* mlock=on|off|on-fault: lock all memory now, not at all, or each page when it is first used. On if left out.
* vcpus=LIST: the CPUs that are realtime: all (if left out), 1-3, 0,2, or ^0 for all but 0.
* vcpu-affinity=LIST: host CPUs; the first realtime CPU runs on the first of them, and so on.
* event-affinity=LIST: host CPUs that event threads may run on.
* latency-warn=US: microseconds a CPU may be held off before an event tells.
* cpu-dma-latency=on|off: keep the host's CPUs out of deep idle states while realtime. On if left out.
* id=NAME: a profile. Several can be given; the first is in force at start, and monitors or the guest (-device realtime-switch) change to another while the guest runs.
* check: print what of the host is in the way of realtime, and exit.

"-realtime" alone locks memory. Several without id add up.

-overcommit [mem-lock=on|off|on-fault][,cpu-pm=on|off]
@group overcommit
> lock memory; let the guest idle the host's CPU
mem-lock locks memory as -realtime does; if either asks for it, it is done. cpu-pm=on lets the guest execute HLT, MWAIT and PAUSE without leaving it, where the host can do so.

= Booting without a boot loader

-kernel FILE
> kernel: Linux bzImage, or ELF with PVH or multiboot entry
Load this kernel and start it without firmware.

-initrd FILE
> initial RAM disk (multiboot: modules, separated by commas)
Load this file as the initial RAM disk of the kernel.

-append TEXT
> the kernel's command line
Give the kernel this command line.

-bios FILE
> firmware image
Put this image below 4 GiB and start at its reset vector.

-fw_cfg [name=]NAME,file=FILE|string=TEXT
@group fw_cfg
> give the guest a file by fw_cfg
Give the guest a file NAME, which firmware and kernels read through the firmware configuration device (Linux: /sys/firmware/qemu_fw_cfg/by_name/NAME/raw). Its contents are those of FILE (at most 64 MiB), or TEXT without a final zero byte. The name has at most 55 bytes and should begin with "opt/", as others may mean something to firmware.

-L DIRECTORY
> where to look for firmware
Look for firmware images in this directory first. May be given several times: they are searched in the order given. Firmware that is named without a slash is looked for in the current directory, then in those of -L, in share/qemu-rt of the installation, in /usr/share/seabios and in /usr/share/qemu. Without -bios and -kernel its name is bios-256k.bin.

= Character devices and monitors

-chardev BACKEND,id=ID[,PROP=VALUE...]
@group chardev
> make a character device ('-chardev help' lists back ends)
Make a character back end that serial ports and monitors can use.

* null: takes everything and says nothing.
* stdio: the terminal, or what standard input and output are; signal=off passes Ctrl-C to the guest.
* file: path=FILE, append=on|off; input-path=FILE is read.
* pipe: path=NAME: the named pipes NAME.in, which is read, and NAME.out, which is written; or NAME alone for both.
* serial (or tty): path=DEVICE: a serial port of the host, such as /dev/ttyS0, raw; rate, parity, stop bits, break, DTR and RTS are set to what the guest sets. The guest sees CTS, DSR and DCD asserted.
* pty: a new pseudo terminal, whose name is printed.
* socket: path=FILE, host=HOST,port=PORT, or fd=FD; server=on|off, wait=on|off, telnet=on|off, reconnect=SECONDS, ipv4=, ipv6=, to=PORT, nodelay=on|off, abstract=on|off, tight=on|off.
* udp: host=HOST (localhost), port=PORT, localaddr=ADDRESS, localport=PORT: datagrams; what nobody receives is lost.
* ringbuf: size=SIZE: the last bytes, for the monitor command ringbuf-read.
* mux=on: several may use it; Ctrl-A c switches between them.
* logfile=FILE, logappend=on|off: what is put out goes to a file too.

-add-fd fd=FD,set=SET[,opaque=TEXT]
@group add-fd
> put an inherited descriptor into a set, /dev/fdset/SET
Put a file descriptor that the program inherited into the set SET. Where a character device takes a file name, /dev/fdset/SET is the descriptor of the set that was opened for the same access.

-serial DEVICE
> connect the next serial port: stdio, pty, file:PATH,
> /dev/ttyS0 (a port of the host), unix:PATH,server=on,
> tcp:HOST:PORT, udp:HOST:PORT[@[ADDRESS]:PORT],
> chardev:ID, null, none
Connect the next serial port. "mon:" before the device lets a monitor share it.

-debugcon DEVICE
> connect the debug console (port 0xe9)
Connect the debug console at I/O port 0xe9.

-monitor DEVICE
> connect a monitor for people (HMP)
Connect a human monitor to a character device.

-qmp DEVICE
> connect a monitor for programs (QMP)
Connect a QMP monitor to a character device.

-qmp-pretty DEVICE
> the same, with indented output
Connect a QMP monitor whose output is indented.

-mon [chardev=]ID[,mode=readline|control][,pretty=on|off]
@group mon
> connect a monitor to a character device made by -chardev
Connect a monitor to the character device ID: readline for people, control for QMP.

-qtest DEVICE
> connect a test program (qtest protocol)
Connect a test program that drives devices.

-qtest-log FILE
> log the qtest conversation
Write what the test program says and hears to this file; "none" for nothing.

-parallel none
> no parallel port
Accepted for compatibility, as there are no parallel ports.

= Network and disks

-nic none
> no network adapter
Accepted for compatibility, as there are no network adapters.

-net none
> the same as -nic none
The same as "-nic none".

-snapshot
> write nothing to disk images; there are none
Accepted for compatibility, as there are no disks to write to.

= Display

-display none
> no display
There is no display to choose yet but none. "-display help" lists them.

-nographic
> serial port and monitor on the terminal, no display
Connect the first serial port and a monitor to the terminal: Ctrl-A c switches between them, Ctrl-A x ends the machine.

-vga none
> no display adapter
Accepted for compatibility, as there is no display adapter to choose but none.

-vnc none
> no VNC server
Accepted for compatibility, as there is no VNC server.

-audio none
> play no sound
Accepted for compatibility, as nothing here makes a sound.

-k LAYOUT
> keyboard layout of displays; no effect
Accepted for compatibility: a keyboard layout (such as en-us) concerns displays, and there are none.

-audiodev none,id=ID
> an audio device that plays nothing
Accepted for management tools: the only audio device is one that plays nothing (driver "none").

= Running

-S
> do not start the CPUs ('cont' in a monitor starts them)
Prepare everything, then wait for "cont".

-no-reboot
> exit instead of rebooting
The same as "-action reboot=shutdown".

-no-shutdown
> stop instead of exiting when the guest powers off
The same as "-action shutdown=pause".

-action [reboot=reset|shutdown][,shutdown=poweroff|pause][,panic=ACTION][,watchdog=ACTION]
@group action
> what to do when the guest reboots, powers off or panics
* reboot=reset|shutdown: what a reset of the guest does.
* shutdown=poweroff|pause: whether the program ends or stops when the guest powers off.
* panic=pause|shutdown|exit-failure|none: what a panic does that the guest reports.
* watchdog=reset|shutdown|poweroff|inject-nmi|pause|debug|none: what an expired watchdog does.

-rtc [base=utc|localtime|DATE][,clock=host|rt|vm][,driftfix=none|slew]
@group rtc
> the clock of the machine
Set the start value of the machine's real-time clock (DATE as 2006-06-17T16:01:21 or 2006-06-17), the clock it follows, and whether lost ticks are made up for.

-icount shift=N[,sleep=on|off][,align=off]
@group icount
> virtual time by retired instructions (tcg, one CPU)
Make a run repeatable: virtual time, and with it the time-stamp counter and all timers, advances by 2^N nanoseconds for each instruction the CPU retires, and never by the host's clock. Timers expire at exact instruction counts. Give a fixed date with -rtc base=DATE,clock=vm too. Only with -accel tcg and one CPU; what comes from outside (input, monitor commands that change something) is not recorded.

* shift=N: 0 to 10. There is no shift=auto.
* sleep=on|off: while the CPU is halted, wait for its next timer (on, the default), or let virtual time jump to it.
* align=off: virtual time is never made to follow the host's clock, so on is refused; so are rr=, rrfile= and rrsnapshot=.

-seed N
> repeatable random numbers for the guest
What RDRAND and RDSEED give comes from a generator that starts at N instead of from the host's processor (-accel tcg). -icount alone implies -seed 0.

-no-acpi
> the same as -machine acpi=off
Leave out the ACPI tables.

-no-fd-bootchk
> no check of a floppy's boot signature
Accepted for compatibility: firmware is never told to check it.

-no-hpet
> the same as -machine hpet=off
Leave out the HPET.

-sandbox off
> no filter of system calls
Accepted for management tools: there is no filter of system calls that could be switched on.

-daemonize
> go to the background once the machine is ready
Detach from the terminal. The command returns, with status 0, when the machine is ready; if it fails to start, with status 1 and the message.

-pidfile FILE
> write the process id to a file
Write the process id to a file, which is locked while the program runs and removed when it ends. It is there before
anything waits (for a client of a socket, say), so it names the process to end also while the machine is being made:
SIGTERM, SIGINT and SIGHUP end that at once, with status 1.

= Debugging

-d ITEM[,ITEM...]
> log these items ('-d help' lists them)
Write a log of the items to standard error or the file of -D.

-dfilter RANGE[,RANGE...]
> limit -d in_asm, out_asm, exec and cpu to code at these addresses
Log only blocks of guest code whose first byte is in one of the ranges, for the items in_asm, out_asm, exec and cpu. Addresses are linear: base of CS plus offset.

* START..END: from START up to and with END.
* START+LEN: LEN bytes from START on.
* START-LEN: LEN bytes of which START is the last.

-D FILE
> write the log to a file
Write the log to this file instead of standard error.

-msg [timestamp=on|off][,guest-name=on|off]
@group msg
> what error messages begin with
Begin error messages with the time, and with the guest's name.

% EXAMPLES
A Linux kernel with an initial RAM disk, on the terminal (Ctrl-A x ends the machine):

    qemu-system-x86_64 -m 512 -kernel vmlinuz -initrd initrd.img -append console=ttyS0 -nographic

The same with bounded latency, on KVM; first what of the host is in the way:

    qemu-system-x86_64 -realtime maxprio=50,policy=fifo -realtime check
    qemu-system-x86_64 -realtime maxprio=50,policy=fifo -accel kvm -m 2G -kernel vmlinuz -initrd initrd.img -append console=ttyS0 -nographic

Two CPUs, each on a host CPU of its own, devices on a third (adapt the numbers to the host):

    qemu-system-x86_64 -realtime maxprio=50,policy=fifo,vcpu-affinity=2-3,event-affinity=1 -smp 2 -kernel vmlinuz -initrd initrd.img -append console=ttyS0 -nographic

A monitor for programs, beside it:

    qemu-system-x86_64 -display none -qmp unix:/tmp/qmp,server=on,wait=off -kernel vmlinuz -initrd initrd.img

% FILES
* PREFIX/share/qemu-rt/: the program's own firmware, if there is some; see -L.
* /usr/share/seabios/bios-256k.bin: SeaBIOS (package seabios), which a machine without -kernel starts.
* /dev/kvm: for -accel kvm.
* /dev/cpu_dma_latency: held open at 0 while -realtime is in force.
* PREFIX/share/doc/qemu-rt/: README.md, and docs/realtime.md, the guide to -realtime.

% EXIT STATUS
0 if the guest powered off or the program was told to quit; 1 if it could not start, or an option was wrong. With -device isa-debug-exit the guest gives a status of its own.

% SEE ALSO
chrt(1), taskset(1), cyclictest(8), sched(7), mlockall(2), getrlimit(2)
