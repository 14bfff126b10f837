// Signals: with data and alone, set and added, by a thread, a warp and a block; and waits for them.
#include "kernel.h"

#define COPY(COUNT) for (int i = 0; i < COUNT; i++) out[i] = data[i]

// With data: the signal comes after it.
KERNEL(put_signal) {
    nvshmem_int_put_signal(data, in, 4, words, 1, NVSHMEM_SIGNAL_SET, NEXT);
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    COPY(4);
}
KERNEL(put_signal_add) {
    nvshmem_int_put_signal(data, in, 2, words, 3, NVSHMEM_SIGNAL_ADD, NEXT);
    nvshmem_int_put_signal(data + 2, in + 2, 2, words, 4, NVSHMEM_SIGNAL_ADD, NEXT);
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 7);
    COPY(4);
}
KERNEL(put_signal_nbi) {
    nvshmem_int_put_signal_nbi(data, in, 4, words, 1, NVSHMEM_SIGNAL_SET, NEXT);
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    COPY(4);
    nvshmem_quiet();
}
KERNEL(put_signal_of_bytes) {
    nvshmem_putmem_signal(data, in, 6, words, 1, NVSHMEM_SIGNAL_SET, NEXT);
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    COPY(2);
}
KERNEL(put_signal_of_doubles) {
    nvshmem_double_put_signal((double *)data, (double *)in, 2, words, 1, NVSHMEM_SIGNAL_ADD, NEXT);
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    COPY(4);
}
KERNEL(put_signal_to_self) {
    nvshmem_int_put_signal(data, in, 4, words, 1, NVSHMEM_SIGNAL_SET, ME);
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    COPY(4);
}

// With data, by a warp and by a block.
KERNEL(put_signal_warp) {
    nvshmemx_int_put_signal_warp(data, in, 4, words, 1, NVSHMEM_SIGNAL_SET, NEXT);
    if (!FIRST) return;
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    COPY(4);
}
KERNEL(put_signal_warp_add) {
    nvshmemx_int_put_signal_warp(data, in, 4, words, 2, NVSHMEM_SIGNAL_ADD, NEXT);
    if (!FIRST) return;
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 2);
    COPY(4);
}
KERNEL(put_signal_nbi_warp) {
    nvshmemx_int_put_signal_nbi_warp(data, in, 4, words, 1, NVSHMEM_SIGNAL_ADD, NEXT);
    if (!FIRST) return;
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    COPY(4);
    nvshmem_quiet();
}
KERNEL(put_signal_block) {
    nvshmemx_int_put_signal_block(data, in, 8, words, 1, NVSHMEM_SIGNAL_ADD, NEXT);
    if (!FIRST) return;
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_GE, 1);
    COPY(8);
}
KERNEL(put_signal_block_set) {
    nvshmemx_put64_signal_block(data, in, 2, words, 9, NVSHMEM_SIGNAL_SET, NEXT);
    if (!FIRST) return;
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 9);
    COPY(4);
}
KERNEL(put_signal_nbi_block) {
    nvshmemx_int_put_signal_nbi_block(data, in, 4, words, 1, NVSHMEM_SIGNAL_SET, NEXT);
    if (!FIRST) return;
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    COPY(4);
    nvshmem_quiet();
}

// Alone.
KERNEL(signal_set) {
    nvshmemx_signal_op(words, 7, NVSHMEM_SIGNAL_SET, NEXT);
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 7);
}
KERNEL(signal_add) {
    for (int pe = 0; pe < N; pe++) nvshmemx_signal_op(words, 2, NVSHMEM_SIGNAL_ADD, pe);
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 2 * N);
}
KERNEL(signal_to_self) {
    nvshmemx_signal_op(words, 7, NVSHMEM_SIGNAL_SET, ME);
    out[0] = (int)nvshmem_signal_wait_until(words, NVSHMEM_CMP_NE, 0);
}
// A fetch returns what is there at the time.
KERNEL(signal_fetch) {
    if (ME == 1) nvshmemx_signal_op(words, 7, NVSHMEM_SIGNAL_SET, 0);
    if (ME == 0) out[0] = (int)nvshmem_signal_fetch(words);
}

// Comparisons. The wait returns the value that ended it, and another addition may have been there already.
KERNEL(wait_ge) {
    if (ME == 1) {
        nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_ADD, 0);
        nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_ADD, 0);
    }
    if (ME == 0) out[0] = (int)nvshmem_signal_wait_until(words, NVSHMEM_CMP_GE, 1);
}
KERNEL(wait_gt) {
    if (ME == 1) {
        nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_ADD, 0);
        nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_ADD, 0);
    }
    if (ME == 0) out[0] = (int)nvshmem_signal_wait_until(words, NVSHMEM_CMP_GT, 1);
}
KERNEL(wait_ne) {
    if (ME == 1) {
        nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_SET, 0);
        nvshmem_fence();
        nvshmemx_signal_op(words, 5, NVSHMEM_SIGNAL_SET, 0);
    }
    if (ME == 0) out[0] = (int)nvshmem_signal_wait_until(words, NVSHMEM_CMP_NE, 0);
}
// PE 0 counts down from 9 what PE 1 takes away, once PE 1 has heard that it may.
#define COUNT_DOWN(COMPARISON, LIMIT)                                                                                   \
    if (ME == 0) {                                                                                                      \
        nvshmemx_signal_op(words, 9, NVSHMEM_SIGNAL_SET, 0);                                                            \
        nvshmem_quiet();                                                                                                \
        nvshmemx_signal_op(words + 1, 1, NVSHMEM_SIGNAL_SET, 1);                                                        \
        out[0] = (int)nvshmem_signal_wait_until(words, COMPARISON, LIMIT);                                              \
    } else {                                                                                                            \
        nvshmem_signal_wait_until(words + 1, NVSHMEM_CMP_EQ, 1);                                                        \
        nvshmemx_signal_op(words, (uint64_t)-4, NVSHMEM_SIGNAL_ADD, 0);                                                 \
    }
KERNEL(wait_le) { COUNT_DOWN(NVSHMEM_CMP_LE, 5) }
KERNEL(wait_lt) { COUNT_DOWN(NVSHMEM_CMP_LT, 6) }

// Several PEs.
KERNEL(ping_pong) {
    for (uint64_t round = 1; round <= 3; round++) {
        if (ME == 0) nvshmemx_signal_op(words, round, NVSHMEM_SIGNAL_SET, 1);
        nvshmem_signal_wait_until(words, NVSHMEM_CMP_GE, round);
        if (ME == 1) nvshmemx_signal_op(words, round, NVSHMEM_SIGNAL_SET, 0);
    }
    out[0] = (int)nvshmem_signal_fetch(words);
}
#define PASS_TOKEN                                                                                                      \
    if (ME == 0) {                                                                                                      \
        nvshmemx_signal_op(words, 10, NVSHMEM_SIGNAL_SET, NEXT);                                                        \
        out[0] = (int)nvshmem_signal_wait_until(words, NVSHMEM_CMP_NE, 0);                                              \
    } else {                                                                                                            \
        uint64_t token = nvshmem_signal_wait_until(words, NVSHMEM_CMP_NE, 0);                                           \
        nvshmemx_signal_op(words, token + 1, NVSHMEM_SIGNAL_SET, NEXT);                                                 \
    }
KERNEL(token_of_three) { PASS_TOKEN }
KERNEL(token_of_four) { PASS_TOKEN }
KERNEL(data_of_two) {
    if (ME != 0) {
        nvshmem_int_put_signal(data + 2 * ME, in, 2, words, 1, NVSHMEM_SIGNAL_ADD, 0);
    } else {
        nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 2);
        COPY(6);
    }
}
// Two values through one slot. The second may be put when the first has been read: the reader says so.
KERNEL(credit) {
    for (uint64_t round = 1; round <= 2; round++) {
        if (ME == 0) {
            if (round > 1) nvshmem_signal_wait_until(words + 1, NVSHMEM_CMP_GE, round - 1);
            nvshmem_int_put_signal(data, in + round, 1, words, round, NVSHMEM_SIGNAL_SET, 1);
        } else {
            nvshmem_signal_wait_until(words, NVSHMEM_CMP_GE, round);
            __threadfence_system();
            out[round] = *(volatile int *)data;
            __threadfence_system();
            nvshmemx_signal_op(words + 1, round, NVSHMEM_SIGNAL_SET, 0);
        }
    }
}
KERNEL(without_credit) {
    for (uint64_t round = 1; round <= 2; round++) {
        if (ME == 0) {
            nvshmem_int_put_signal(data, in + round, 1, words, round, NVSHMEM_SIGNAL_SET, 1);
            nvshmem_fence();
        } else {
            nvshmem_signal_wait_until(words, NVSHMEM_CMP_GE, round);
            __threadfence_system();
            out[round] = *(volatile int *)data;
        }
    }
}

// Threads of a block: one waits for all, each waits for its own.
KERNEL(block_passes_on_what_a_thread_waited_for) {
    if (FIRST) {
        nvshmem_int_put_signal(data, in, 8, words, 1, NVSHMEM_SIGNAL_SET, NEXT);
        nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    }
    __syncthreads();
    if (threadIdx.x < 8) out[threadIdx.x] = data[threadIdx.x];
}
KERNEL(each_thread_waits) {
    const int i = threadIdx.x;
    nvshmem_int_put_signal(data + i, in + i, 1, words + i, 1, NVSHMEM_SIGNAL_SET, NEXT);
    nvshmem_signal_wait_until(words + i, NVSHMEM_CMP_EQ, 1);
    out[i] = data[i];
}
KERNEL(a_warp_for_each_direction) {
    const int pe = threadIdx.x < 32 ? NEXT : (ME + N - 1) % N, slot = threadIdx.x / 32;
    nvshmemx_int_put_signal_warp(data + 2 * slot, in, 2, words + slot, 1, NVSHMEM_SIGNAL_SET, pe);
    if (threadIdx.x % 32 != 0) return;
    nvshmem_signal_wait_until(words + slot, NVSHMEM_CMP_EQ, 1);
    out[2 * slot] = data[2 * slot];
    out[2 * slot + 1] = data[2 * slot + 1];
}
