// Several threads put, complete or order, and signal. Each PE waits for a signal from each thread, and reads.
#include <nvshmem.h>
#include <nvshmemx.h>

#define OTHER (1 - nvshmem_my_pe())
#define KERNEL(NAME) extern "C" __global__ void NAME(int *data, uint64_t *signals, int *seen)
#define RECEIVE                                                                                                        \
    nvshmem_signal_wait_until(signals + threadIdx.x, NVSHMEM_CMP_EQ, 1);                                               \
    seen[threadIdx.x] = data[threadIdx.x];

// Each thread completes what it has put itself, whoever else completes it.
KERNEL(each_quiets) {
    nvshmem_int_p(data + threadIdx.x, 1 + threadIdx.x, OTHER);
    nvshmem_quiet();
    nvshmemx_signal_op(signals + threadIdx.x, 1, NVSHMEM_SIGNAL_SET, OTHER);
    RECEIVE
}
KERNEL(each_quiets_nbi) {
    data[64 + threadIdx.x] = 1 + threadIdx.x;
    nvshmem_int_put_nbi(data + threadIdx.x, data + 64 + threadIdx.x, 1, OTHER);
    nvshmem_quiet();
    nvshmemx_signal_op(signals + threadIdx.x, 1, NVSHMEM_SIGNAL_SET, OTHER);
    RECEIVE
}
KERNEL(each_fences) {
    nvshmem_int_p(data + threadIdx.x, 1 + threadIdx.x, OTHER);
    nvshmem_fence();
    nvshmemx_signal_op(signals + threadIdx.x, 1, NVSHMEM_SIGNAL_SET, OTHER);
    RECEIVE
}
// One thread orders what all have put, and all signal behind that.
KERNEL(one_fences) {
    nvshmem_int_p(data + threadIdx.x, 1 + threadIdx.x, OTHER);
    __syncthreads();
    if (threadIdx.x == 0) nvshmem_fence();
    __syncthreads();
    nvshmemx_signal_op(signals + threadIdx.x, 1, NVSHMEM_SIGNAL_SET, OTHER);
    RECEIVE
}
// A fence of the second thread comes after nothing that the first one has done, and orders nothing of that.
KERNEL(another_fences) {
    nvshmem_int_p(data + threadIdx.x, 1 + threadIdx.x, OTHER);
    if (threadIdx.x == 1) nvshmem_fence();
    nvshmemx_signal_op(signals + threadIdx.x, 1, NVSHMEM_SIGNAL_SET, OTHER);
    RECEIVE
}
// What a quiet of a stream completes.
KERNEL(puts) {
    data[64 + threadIdx.x] = 1 + threadIdx.x;
    nvshmem_int_put_nbi(data + threadIdx.x, data + 64 + threadIdx.x, 1, OTHER);
}
KERNEL(calls_the_other) {
    if (threadIdx.x == 0) nvshmemx_signal_op(signals + 1, 1, NVSHMEM_SIGNAL_SET, OTHER);
}

// Nothing orders the threads: one's quiet may come before the other's put, and one's signal before the other's addition.
KERNEL(quiet_beside_a_put) {
    if (threadIdx.x == 0) {
        nvshmem_int_put_nbi(data, data + 64, 1, nvshmem_my_pe());
    } else {
        nvshmem_int_p(data + 1, 11, nvshmem_my_pe());
        nvshmem_quiet();
    }
}
KERNEL(swap_beside_a_wait) {
    if (threadIdx.x == 0) {
        seen[0] = (int)nvshmem_signal_wait_until(signals, NVSHMEM_CMP_GE, 2);
    } else {
        nvshmem_uint64_atomic_swap(signals, 2, nvshmem_my_pe());
        nvshmem_quiet();
        nvshmemx_signal_op(signals, 3, NVSHMEM_SIGNAL_SET, nvshmem_my_pe());
    }
}
// Two threads poll, and each other's signal is what they wait for.
KERNEL(hand_shake) {
    int me = nvshmem_my_pe(), other = 1 - threadIdx.x;
    if (threadIdx.x == 1) nvshmemx_signal_op(signals + other, 1, NVSHMEM_SIGNAL_ADD, me);
    while (nvshmem_uint64_atomic_fetch(signals + threadIdx.x, me) < 1) {}
    if (threadIdx.x == 0) nvshmemx_signal_op(signals + other, 1, NVSHMEM_SIGNAL_ADD, me);
}
// What one thread stores in a turn of its block ends the wait of another.
KERNEL(store_ends_a_wait) {
    if (threadIdx.x == 0) {
        nvshmem_uint64_wait_until(signals, NVSHMEM_CMP_GE, 1);
        seen[0] = 1;
    } else {
        *(volatile uint64_t *)signals = 2;
    }
}
// A barrier of one thread, and a put of another, which the barrier completes or not.
KERNEL(barrier_beside_a_put) {
    if (threadIdx.x == 0) {
        nvshmem_sync_all();
        nvshmem_barrier_all();
    } else if (nvshmem_my_pe() == 1) {
        nvshmem_int_put_signal_nbi(data, data + 64, 1, signals, 1, NVSHMEM_SIGNAL_ADD, 0);
    }
}

// A fence orders what a thread has put before what it writes to the same PE itself: to a flag by a strong store or an atomic, and to the word that it has put.
#define PEER(POINTER) (static_cast<decltype(POINTER)>(nvshmem_ptr(POINTER, OTHER)))
#define SEE                                                                                                            \
    while (*const_cast<volatile uint64_t *>(signals) == 0) {                                                           \
    }                                                                                                                  \
    __threadfence_system();                                                                                            \
    seen[0] = data[0];
#define FIRST if (threadIdx.x == 0)
KERNEL(fence_and_store) {
    FIRST {
        nvshmem_int_p(data, 1, OTHER);
        nvshmem_fence();
        *const_cast<volatile uint64_t *>(PEER(signals)) = 1;
        SEE
    }
}
KERNEL(fence_and_atomic) {
    FIRST {
        nvshmem_int_p(data, 1, OTHER);
        nvshmem_fence();
        atomicAdd_system(reinterpret_cast<unsigned long long *>(PEER(signals)), 1ull);
        SEE
    }
}
KERNEL(fence_and_plain_store) {
    FIRST {
        nvshmem_int_p(data, 7, OTHER);
        nvshmem_fence();
        *PEER(data) = 1;
        __threadfence_system();
        *const_cast<volatile uint64_t *>(PEER(signals)) = 1;
        SEE
    }
}
KERNEL(fence_and_strong_store) {
    FIRST {
        nvshmem_int_p(data, 7, OTHER);
        nvshmem_fence();
        *const_cast<volatile int *>(PEER(data)) = 1;
        __threadfence_system();
        *const_cast<volatile uint64_t *>(PEER(signals)) = 1;
        SEE
    }
}
KERNEL(store_without_fence) {
    FIRST {
        nvshmem_int_p(data, 1, OTHER);
        *const_cast<volatile uint64_t *>(PEER(signals)) = 1;
        SEE
    }
}
KERNEL(fence_before_the_put) {
    FIRST {
        nvshmem_fence();
        nvshmem_int_p(data, 1, OTHER);
        *const_cast<volatile uint64_t *>(PEER(signals)) = 1;
        SEE
    }
}
// The fence is about each PE alone: it does not order what goes to one before a flag at another, neither a store there nor a signal behind a store to the
// first.
#define ELSEWHERE(NAME, ...)                                                                                           \
    KERNEL(NAME) {                                                                                                     \
        FIRST {                                                                                                        \
            const int me = nvshmem_my_pe();                                                                            \
            if (me == 0) {                                                                                             \
                nvshmem_int_p(data, 1, 1);                                                                             \
                nvshmem_fence();                                                                                       \
                __VA_ARGS__                                                                                            \
            } else {                                                                                                   \
                nvshmem_signal_wait_until(signals, NVSHMEM_CMP_EQ, 1);                                                 \
                if (me == 1) seen[0] = data[0];                                                                        \
                else nvshmemx_signal_op(signals, 1, NVSHMEM_SIGNAL_SET, 1);                                            \
            }                                                                                                          \
        }                                                                                                              \
    }
#define STORE_AT(WORD, PE) *static_cast<volatile uint64_t *>(nvshmem_ptr(WORD, PE)) = 1
ELSEWHERE(fence_and_flag_elsewhere, STORE_AT(signals, 2);)
ELSEWHERE(fence_and_store_elsewhere, STORE_AT(signals + 1, 1); nvshmemx_signal_op(signals, 1, NVSHMEM_SIGNAL_SET, 2);)
