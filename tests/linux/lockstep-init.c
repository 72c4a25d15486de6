/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The first process of a guest that lockstep.py runs: user code of many kinds, whose results go to
 * the console. It prints "lockstep: end" and powers off. Built static, for the guest.
 */
#include <fcntl.h>
#include <fenv.h>
#include <immintrin.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

static void x87_functions(void)
{
    long double s = 0;

    for (int i = 1; i < 5000; i++) {
        s += sinl(i) * logl(i) / expl(1.0L / i) + powl(i, 0.3L) + fmodl(i * 1e10L, 7.1L) + atan2l(i, 3);
    }
    printf("x87 %.20Lf\n", s);
}

__attribute__((target("avx2,fma"))) static void vectors(void)
{
    __m256d a = _mm256_set1_pd(1.0000001), s = a;
    __m256i v = _mm256_set1_epi32(0x12345);
    double d[4];

    for (int i = 0; i < 50000; i++) {
        s = _mm256_sqrt_pd(_mm256_fmadd_pd(s, a, _mm256_set1_pd(1e-9)));
        v = _mm256_add_epi32(_mm256_permutevar8x32_epi32(v, v), _mm256_slli_epi32(v, 3));
    }
    _mm256_storeu_pd(d, s);
    printf("vectors %.17g %.17g %x\n", d[0], d[3], _mm256_extract_epi32(v, 5));
}

static void rounding(void)
{
    static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };

    for (int m = 0; m < 4; m++) {
        volatile float f = 1.1f;
        volatile double d = 1.3;

        fesetround(modes[m]);
        for (int i = 0; i < 10000; i++) {
            f = f * 1.0001f + 0.3f / f;
            d = sqrt(d * d + 0.1) / 1.00001;
        }
        printf("rounding %d: %a %a %x\n", m, (double)f, d, (unsigned)fetestexcept(FE_ALL_EXCEPT));
    }
    fesetround(FE_TONEAREST);
}

/* ---- Faults ---- */

static sigjmp_buf back;
static volatile int faults;

static void on_fault(int sig, siginfo_t *info, void *context)
{
    faults += sig;
    siglongjmp(back, 1);
}

static void fault(int kind)
{
    volatile int zero = 0;

    switch (kind % 5) {
    case 0:
        *(volatile int *)(8l + kind * 4096l) = 1;
        break;
    case 1:
        faults += 1 / zero;
        break;
    case 2:
        __asm__ volatile("ud2");
        break;
    case 3:
        __asm__ volatile("int3");
        break;
    default:
        feclearexcept(FE_ALL_EXCEPT);
        feenableexcept(FE_DIVBYZERO | FE_INVALID);
        if (kind & 1) {
            volatile double z = 0;
            z = 1 / z;
        } else {
            volatile long double z = 0;
            z = 1 / z;
            z += 1;
        }
    }
}

static void catch_faults(void (*handler)(int, siginfo_t *, void *))
{
    static const int signals[] = { SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGBUS };
    struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER };

    for (int i = 0; i < 5; i++) {
        if (handler) {
            sigaction(signals[i], &sa, NULL);
        } else {
            signal(signals[i], SIG_DFL);
        }
    }
}

static void faults_taken(void)
{
    catch_faults(on_fault);
    for (volatile int i = 0; i < 3000; i++) {
        if (!sigsetjmp(back, 1)) {
            fault(i);
        }
        fedisableexcept(FE_ALL_EXCEPT);
        feclearexcept(FE_ALL_EXCEPT);
    }
    catch_faults(NULL);
    printf("faults %d\n", faults);
}

/* ---- Code that is written while it runs ---- */

static void written_code(void)
{
    uint8_t *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                      0);
    long sum = 0;

    for (int i = 0; i < 10000; i++) {
        uint8_t *q = p + i * 37 % 60000;

        q[0] = 0xb8; /* MOV EAX, i; RET */
        memcpy(q + 1, &i, 4);
        q[5] = 0xc3;
        for (int k = 0; k <= 20 * (i % 3 == 0); k++) {
            sum += ((int (*)(void))(void *)q)();
        }
    }
    printf("written code %ld\n", sum);
}

/*
 * ---- 32-bit code: through a far return to the compatibility segment, and back ----
 * Not every host's kernel has that segment: there the program dies, in a child.
 */

__asm__(".pushsection .text\n.code32\ncode32:\n"
        "  mov $20000, %ecx\n  xor %eax, %eax\n  mov $3, %ebx\n"
        "1: push %ecx\n  call 2f\n  pop %ecx\n  add %ecx, %eax\n  adc $0, %ebx\n  rol $3, %eax\n"
        "  lea 5(%ebx,%eax,2), %edx\n  cmp %edx, %eax\n  jbe 3f\n  inc %ebx\n"
        "3: dec %ecx\n  jnz 1b\n  ljmp $0x33, $code64\n"
        "2: push %ebp\n  mov %esp, %ebp\n  imul 8(%ebp), %ebx\n  xor %ebx, %eax\n"
        "  cvtsi2sd %eax, %xmm0\n  sqrtsd %xmm0, %xmm1\n  fldl2e\n  fstp %st\n  leave\n  ret\n"
        "code32_end:\n.code64\n.popsection\n");
extern const char code32[], code32_end[];

static void compatibility_mode(void)
{
    char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    pid_t child = fork();
    uint32_t a, b;

    if (child) {
        waitpid(child, NULL, 0);
        return;
    }
    __asm__ volatile("mov %%rsp, %%r12\n mov %2, %%rsp\n push $0x23\n push $code32\n lretq\n"
                     ".globl code64\ncode64: mov %%r12, %%rsp\n"
                     : "=a"(a), "=b"(b)
                     : "r"(stack + 65536 - 64)
                     : "rcx", "rdx", "r12", "xmm0", "xmm1", "memory", "cc", "st");
    printf("32 bits %x %x\n", a, b);
    _exit(0);
}

static void processes(void)
{
    unsigned sum = 0;

    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        int status;

        if (!child) {
            char *m = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

            for (int k = 0; k < 1 << 20; k += 4096) {
                m[k] = (char)k;
            }
            _exit(i);
        }
        waitpid(child, &status, 0);
        sum += (unsigned)status;
    }
    printf("processes %x\n", sum);
}

int main(void)
{
    int fd;

    setvbuf(stdout, NULL, _IONBF, 0);
    if (getpid() == 1) {
        mount("proc", "/proc", "proc", 0, NULL);
    }
    fd = getpid() == 1 ? open("/proc/sys/debug/exception-trace", O_WRONLY) : -1; /* no line for each fault */
    if (fd >= 0 && write(fd, "0", 1) == 1) {
        close(fd);
    }
    x87_functions();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        vectors();
    }
    rounding();
    faults_taken();
    written_code();
    compatibility_mode();
    processes();
    printf("lockstep: end\n");
    return getpid() == 1 ? reboot(RB_POWER_OFF) : 0;
}
