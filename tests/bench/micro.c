/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * micro WHAT SECONDS: one thing over and over, in the guest and on the host. Prints
 * "micro: WHAT RATE" with RATE a second, and for "int" also a sum that must be the same everywhere.
 *   null      system call that does nothing
 *   forkexec  fork, execve of a small static program, exit, wait
 *   pipe      a byte to another process and one back
 *   fault     first touch of an anonymous page
 *   int       integer work in user mode: sorting, hashing, a state machine over text
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static unsigned null_call(void)
{
    for (unsigned i = 0; i < 1000; i++) {
        syscall(SYS_getppid);
    }
    return 1000;
}

static unsigned fork_exec(void)
{
    static char *const args[] = { "micro", "exit", NULL };
    static char *const none[] = { NULL };
    int status;
    pid_t pid = fork();

    if (pid < 0) {
        fail("fork");
    }
    if (pid == 0) {
        execve("/proc/self/exe", args, none);
        _exit(127);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0) {
        fail("child");
    }
    return 1;
}

static unsigned ping_pong(void)
{
    static int to[2], from[2];
    static int started;
    char c = 0;

    if (!started) {
        started = 1;
        if (pipe(to) || pipe(from)) {
            fail("pipe");
        }
        pid_t pid = fork();
        if (pid < 0) {
            fail("fork");
        }
        if (pid == 0) {
            close(to[1]);
            close(from[0]);
            while (read(to[0], &c, 1) == 1 && write(from[1], &c, 1) == 1) {
            }
            _exit(0);
        }
        close(to[0]);
        close(from[1]);
    }
    for (unsigned i = 0; i < 100; i++) {
        if (write(to[1], &c, 1) != 1 || read(from[0], &c, 1) != 1) {
            fail("ping-pong");
        }
    }
    return 100;
}

static unsigned fault(void)
{
    size_t size = 1u << 20;
    volatile char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        fail("mmap");
    }
    madvise((void *)p, size, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < size; i += 4096) {
        p[i] = 1;
    }
    munmap((void *)p, size);
    return (unsigned)(size / 4096);
}

static uint64_t sum;

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static uint64_t sort_numbers(uint64_t *seed)
{
    static uint32_t v[2048];
    uint64_t r = 0;

    for (unsigned i = 0; i < 2048; i++) {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        v[i] = (uint32_t)*seed;
    }
    qsort(v, 2048, sizeof(v[0]), by_value);
    for (unsigned i = 0; i < 2048; i += 64) {
        r = r * 31 + v[i];
    }
    return r;
}

/* Words of a text into an open hash table, counted. */
static uint64_t count_words(uint64_t seed)
{
    static struct { uint32_t hash, count; } table[4096];
    static char text[16384];
    uint64_t r = 0;
    uint32_t hash = 2166136261u;

    for (unsigned i = 0; i < sizeof(text); i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        text[i] = (seed >> 60) < 3 ? ' ' : (char)('a' + (seed >> 61));
    }
    memset(table, 0, sizeof(table));
    for (unsigned i = 0; i < sizeof(text); i++) {
        if (text[i] != ' ') {
            hash = (hash ^ (uint8_t)text[i]) * 16777619u;
            continue;
        }
        for (unsigned n = 0, at = hash % 4096; n < 4096; n++, at = (at + 1) % 4096) {
            if (!table[at].count || table[at].hash == hash) {
                table[at].hash = hash;
                table[at].count++;
                r = r * 33 + at;
                break;
            }
        }
        hash = 2166136261u;
    }
    return r;
}

static unsigned integer(void)
{
    uint64_t seed = 88172645463325252u;

    sum = 0;
    for (unsigned i = 0; i < 4; i++) {
        sum = sum * 131 + sort_numbers(&seed);
        sum = sum * 131 + count_words(seed);
    }
    return 1;
}

static const struct {
    const char *name;
    unsigned (*run)(void);
} kinds[] = {
    { "null", null_call }, { "forkexec", fork_exec }, { "pipe", ping_pong },
    { "fault", fault }, { "int", integer },
};

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "exit")) {
        return 0;
    }
    for (size_t i = 0; argc == 3 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!strcmp(argv[1], kinds[i].name)) {
            double start, t = 0, seconds = atof(argv[2]);
            unsigned long n = 0;

            kinds[i].run();
            start = now();
            do {
                n += kinds[i].run();
                t = now() - start;
            } while (t < seconds);
            printf("micro: %s %.3f\n", argv[1], (double)n / t);
            if (sum) {
                printf("micro: sum %016llx\n", (unsigned long long)sum);
            }
            return 0;
        }
    }
    fprintf(stderr, "usage: micro null|forkexec|pipe|fault|int SECONDS\n");
    return 2;
}
