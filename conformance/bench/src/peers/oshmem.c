/* The peer of `onesided bench`: the same few measurements with OpenSHMEM. PE 0 prints one number.
 *
 *   put COUNT         8-byte put and quiet, PE 0 to PE 1: ns each
 *   pingpong COUNT    8 bytes, a fence and a flag, there and back: ns for one way
 *   barrier COUNT     shmem_barrier_all: ns each
 *   bulk BYTES COUNT  put of BYTES and quiet, PE 0 to PE 1: GB/s
 *   empty             starts and ends
 */
#define _POSIX_C_SOURCE 199309L
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void puts_and_quiets(long *dst, long count) {
    long value = 7;
    for (long i = 0; i < count; i++) {
        shmem_long_put(dst, &value, 1, 1);
        shmem_quiet();
    }
}

static void ways(long *data, long *flag, long from, long count) {
    int me = shmem_my_pe();
    long value = 7;
    for (long turn = from + 1; turn <= from + count; turn++) {
        if (me == 1) shmem_long_wait_until(flag, SHMEM_CMP_EQ, turn);
        shmem_long_put(data, &value, 1, 1 - me);
        shmem_fence();
        shmem_long_p(flag, turn, 1 - me);
        if (me == 0) shmem_long_wait_until(flag, SHMEM_CMP_EQ, turn);
    }
}

static void barriers(long count) {
    for (long i = 0; i < count; i++) shmem_barrier_all();
}

static void bulks(char *dst, const char *src, size_t bytes, long count) {
    for (long i = 0; i < count; i++) {
        shmem_putmem(dst, src, bytes, 1);
        shmem_quiet();
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "empty";
    long count = argc > 2 ? atol(argv[argc - 1]) : 0;
    long warm = count / 10 + 1;
    shmem_init();
    int me = shmem_my_pe();
    double result = 0, start;

    if (strcmp(what, "put") == 0) {
        long *word = shmem_calloc(1, sizeof(long));
        if (me == 0) {
            puts_and_quiets(word, warm);
            start = now_ns();
            puts_and_quiets(word, count);
            result = (now_ns() - start) / count;
        }
    } else if (strcmp(what, "pingpong") == 0 && me < 2) {
        /* A line for each, as separate allocations would have. */
        long *words = shmem_calloc(32, sizeof(long));
        ways(words, words + 16, 0, warm);
        start = now_ns();
        ways(words, words + 16, warm, count);
        result = (now_ns() - start) / (2.0 * count);
    } else if (strcmp(what, "barrier") == 0) {
        barriers(warm);
        start = now_ns();
        barriers(count);
        result = (now_ns() - start) / count;
    } else if (strcmp(what, "bulk") == 0 && argc > 3) {
        size_t bytes = strtoul(argv[2], NULL, 10);
        char *dst = shmem_malloc(bytes), *src = shmem_malloc(bytes);
        memset(dst, 1, bytes);
        memset(src, 2, bytes);
        shmem_barrier_all();
        if (me == 0) {
            bulks(dst, src, bytes, 1);
            start = now_ns();
            bulks(dst, src, bytes, count);
            result = (double)bytes * count / (now_ns() - start);
        }
    }

    shmem_barrier_all();
    if (me == 0) printf("%.9g\n", result);
    shmem_finalize();
    return 0;
}
