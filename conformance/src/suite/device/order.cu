// What orders operations: fences, quiets, signals of others; and what happens without them.
#include "kernel.h"

#define FLAG(PE) nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_SET, PE)
#define AWAIT_FLAG nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1)

// PE 0 puts data and then a flag; PE 1 waits for the flag and reads the data.
#define MESSAGE(PUT, ORDER)                                                                                             \
    if (ME == 0) {                                                                                                      \
        PUT;                                                                                                            \
        ORDER;                                                                                                          \
        FLAG(1);                                                                                                        \
    } else if (ME == 1) {                                                                                               \
        AWAIT_FLAG;                                                                                                     \
        out[0] = data[0];                                                                                               \
    }
KERNEL(fenced_flag) { MESSAGE(nvshmem_int_p(data, 42, 1), nvshmem_fence()) }
KERNEL(flag_without_fence) { MESSAGE(nvshmem_int_p(data, 42, 1), ) }
KERNEL(flag_after_quiet) { MESSAGE(nvshmem_int_p(data, 42, 1), nvshmem_quiet()) }
KERNEL(fence_after_put) { MESSAGE(nvshmem_int_put(data, in + 1, 2, 1), nvshmem_fence()) }
KERNEL(fence_after_put_nbi) { MESSAGE(nvshmem_int_put_nbi(data, in + 1, 2, 1), nvshmem_fence()) }
KERNEL(quiet_after_put_nbi) { MESSAGE(nvshmem_int_put_nbi(data, in + 1, 2, 1), nvshmem_quiet()) }
KERNEL(flag_without_quiet_of_nbi) { MESSAGE(nvshmem_int_put_nbi(data, in + 1, 2, 1), ) }
KERNEL(fence_after_iput) { MESSAGE(nvshmem_int_iput(data, in + 1, 2, 1, 2, 1), nvshmem_fence()) }
KERNEL(fence_after_atomic) { MESSAGE(nvshmem_int_atomic_add(data, 42, 1), nvshmem_fence()) }
// An atomic that returns a value has been done; the flag depends on the value.
KERNEL(flag_after_atomic_that_fetches) {
    if (ME == 0) {
        const int before = nvshmem_int_atomic_fetch_add(data, 42, 1);
        nvshmemx_signal_op(words, 1 + before, NVSHMEM_SIGNAL_SET, 1);
    } else {
        AWAIT_FLAG;
        out[0] = data[0];
    }
}

// A signal comes after its own data only.
KERNEL(signal_covers_its_own_data) {
    if (ME == 0) {
        nvshmem_int_p(data, 42, 1);
        nvshmem_int_put_signal(data + 1, in + 1, 1, words, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        AWAIT_FLAG;
        out[0] = data[0];
        out[1] = data[1];
    }
}

// The same with data of a warp and of a block; the first thread orders it.
KERNEL(fenced_flag_warp) {
    if (ME == 0) {
        nvshmemx_int_put_warp(data, in + 1, 2, 1);
        __syncwarp();
        if (!FIRST) return;
        nvshmem_fence();
        FLAG(1);
    } else if (FIRST) {
        AWAIT_FLAG;
        out[0] = data[0];
    }
}
KERNEL(fenced_flag_block) {
    if (ME == 0) {
        nvshmemx_int_put_block(data, in + 1, 2, 1);
        __syncthreads();
        if (!FIRST) return;
        nvshmem_fence();
        FLAG(1);
    } else {
        if (FIRST) AWAIT_FLAG;
        __syncthreads();
        if (threadIdx.x < 2) out[threadIdx.x] = data[threadIdx.x];
    }
}
KERNEL(quiet_of_a_block_then_flag) {
    if (ME == 0) {
        nvshmemx_int_put_nbi_block(data, in + 1, 2, 1);
        __syncthreads();
        if (!FIRST) return;
        nvshmem_quiet();
        FLAG(1);
    } else if (FIRST) {
        AWAIT_FLAG;
        out[0] = data[0];
    }
}
// Two threads put; each completes its own, they meet, and one of them sets the flag.
KERNEL(each_thread_quiets) {
    if (ME == 0) {
        nvshmem_int_p(data + threadIdx.x, 42, 1);
        nvshmem_quiet();
        __syncthreads();
        if (FIRST) FLAG(1);
    } else if (FIRST) {
        AWAIT_FLAG;
        out[0] = data[0];
        out[1] = data[1];
    }
}
// Two threads put, complete or order their own, and signal, each beside the other.
#define EACH_SIGNALS(ORDER)                                                                                             \
    const int i = threadIdx.x;                                                                                          \
    if (ME == 0) {                                                                                                      \
        nvshmem_int_put_nbi(data + i, in + 1 + i, 1, 1);                                                                \
        ORDER;                                                                                                          \
        nvshmemx_signal_op(words + i, 1, NVSHMEM_SIGNAL_SET, 1);                                                        \
    } else {                                                                                                            \
        nvshmem_signal_wait_until(words + i, NVSHMEM_CMP_EQ, 1);                                                        \
        out[i] = data[i];                                                                                               \
    }
KERNEL(each_thread_quiets_and_signals) { EACH_SIGNALS(nvshmem_quiet()) }
KERNEL(each_thread_fences_and_signals) { EACH_SIGNALS(nvshmem_fence()) }
KERNEL(each_thread_signals_without_order) { EACH_SIGNALS() }
// Two blocks put, each with a signal of its own.
KERNEL(each_block_fences) {
    const int i = blockIdx.x;
    if (ME == 0) {
        nvshmem_int_p(data + i, 42, 1);
        nvshmem_fence();
        nvshmemx_signal_op(words + i, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        nvshmem_signal_wait_until(words + i, NVSHMEM_CMP_EQ, 1);
        out[i] = data[i];
    }
}

// Two puts to one word.
KERNEL(word_put_twice) {
    if (ME != 0) return;
    nvshmem_int_p(data, 1, 1);
    nvshmem_int_p(data, 2, 1);
}
KERNEL(word_put_twice_fenced) {
    if (ME != 0) return;
    nvshmem_int_p(data, 1, 1);
    nvshmem_fence();
    nvshmem_int_p(data, 2, 1);
}
KERNEL(word_put_by_two) {
    if (ME != 0) nvshmem_int_p(data, ME, 0);
}
// Two puts that overlap in one word.
KERNEL(puts_overlap) {
    if (ME != 0) return;
    nvshmem_int_put(data, in, 2, 1);
    nvshmem_int_put(data + 1, in + 5, 2, 1);
}
KERNEL(puts_overlap_fenced) {
    if (ME != 0) return;
    nvshmem_int_put(data, in, 2, 1);
    nvshmem_fence();
    nvshmem_int_put(data + 1, in + 5, 2, 1);
}

// A fence does not order gets; a quiet has completed the put.
KERNEL(get_after_fence) {
    if (ME != 0) return;
    nvshmem_int_p(data, 42, 1);
    nvshmem_fence();
    out[0] = nvshmem_int_g(data, 1);
}
KERNEL(get_after_quiet) {
    if (ME != 0) return;
    nvshmem_int_p(data, 42, 1);
    nvshmem_quiet();
    out[0] = nvshmem_int_g(data, 1);
}
// A fence is for one target: the flag goes to PE 2, which gets the data from PE 1.
#define FLAG_TO_A_THIRD(ORDER)                                                                                          \
    if (ME == 0) {                                                                                                      \
        nvshmem_int_p(data, 42, 1);                                                                                     \
        ORDER;                                                                                                          \
        FLAG(2);                                                                                                        \
    } else if (ME == 2) {                                                                                               \
        AWAIT_FLAG;                                                                                                     \
        out[0] = nvshmem_int_g(data, 1);                                                                                \
    }
KERNEL(flag_to_a_third_after_fence) { FLAG_TO_A_THIRD(nvshmem_fence()) }
KERNEL(flag_to_a_third_after_quiet) { FLAG_TO_A_THIRD(nvshmem_quiet()) }
// PE 0 puts to PE 2 and tells PE 1, which tells PE 2.
#define FLAG_OVER_A_THIRD(ORDER)                                                                                        \
    if (ME == 0) {                                                                                                      \
        nvshmem_int_p(data, 42, 2);                                                                                     \
        ORDER;                                                                                                          \
        FLAG(1);                                                                                                        \
    } else if (ME == 1) {                                                                                               \
        AWAIT_FLAG;                                                                                                     \
        FLAG(2);                                                                                                        \
    } else {                                                                                                            \
        AWAIT_FLAG;                                                                                                     \
        out[0] = data[0];                                                                                               \
    }
KERNEL(flag_over_a_third_after_fence) { FLAG_OVER_A_THIRD(nvshmem_fence()) }
KERNEL(flag_over_a_third_after_quiet) { FLAG_OVER_A_THIRD(nvshmem_quiet()) }

// Each PE sets a word of the other one and looks at its own.
#define STORE_BUFFERING(ORDER)                                                                                          \
    nvshmem_uint64_atomic_set(words, 1, NEXT);                                                                          \
    ORDER;                                                                                                              \
    out[0] = (int)nvshmem_uint64_atomic_fetch(words, ME);
KERNEL(store_buffering) { STORE_BUFFERING() }
KERNEL(store_buffering_with_quiet) { STORE_BUFFERING(nvshmem_quiet()) }
// A word is set twice, and read twice by its owner.
#define READ_TWICE(ORDER)                                                                                               \
    if (ME == 0) {                                                                                                      \
        nvshmem_uint64_atomic_set(words, 1, 1);                                                                         \
        ORDER;                                                                                                          \
        nvshmem_uint64_atomic_set(words, 2, 1);                                                                         \
    } else {                                                                                                            \
        out[0] = (int)nvshmem_uint64_atomic_fetch(words, 1);                                                            \
        out[1] = (int)nvshmem_uint64_atomic_fetch(words, 1);                                                            \
    }
KERNEL(set_twice_and_read_twice) { READ_TWICE() }
KERNEL(set_twice_fenced_and_read_twice) { READ_TWICE(nvshmem_fence()) }
// Two words are set, and read in the other order.
KERNEL(two_words_fenced) {
    if (ME == 0) {
        nvshmem_uint64_atomic_set(words, 1, 1);
        nvshmem_fence();
        nvshmem_uint64_atomic_set(words + 1, 1, 1);
    } else {
        out[0] = (int)nvshmem_uint64_atomic_fetch(words + 1, 1);
        __threadfence_system();
        out[1] = (int)nvshmem_uint64_atomic_fetch(words, 1);
    }
}
