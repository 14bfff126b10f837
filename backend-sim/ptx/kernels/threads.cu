// Threads of a block that work together. With BROKEN, each lacks what orders them: every kernel has a race then.
// The first argument is symmetric memory for data, the second for signals, the third what has been seen.
#include <nvshmem.h>
#include <nvshmemx.h>

#define ME nvshmem_my_pe()
#define OTHER (1 - ME)
#define KERNEL(NAME) extern "C" __global__ void NAME(int *data, uint64_t *signal, int *seen)

#ifdef BROKEN
#define UNLESS_BROKEN(STATEMENT)
#else
#define UNLESS_BROKEN(STATEMENT) STATEMENT
#endif

// One thread waits for a message, and all read it.
KERNEL(one_waits_for_all) {
    if (threadIdx.x == 0) {
        nvshmem_int_put_signal(data, data + 8, 4, signal, 1, NVSHMEM_SIGNAL_SET, OTHER);
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
    }
    UNLESS_BROKEN(__syncthreads();)
    seen[threadIdx.x] = data[threadIdx.x];
}

// One thread waits until the other PE does not need its buffer any more, and another one puts into it.
KERNEL(one_waits_for_credit) {
    if (ME == 1 && threadIdx.x == 0) {
        seen[0] = data[0];
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 0);
    }
    if (ME == 0) {
        if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
        UNLESS_BROKEN(__syncthreads();)
        if (threadIdx.x == 1) nvshmem_int_p(data, 7, 1);
    }
}

// Each thread writes a word of the PE's memory, and its neighbour reads it.
KERNEL(neighbours) {
    data[threadIdx.x] = threadIdx.x;
    UNLESS_BROKEN(__syncthreads();)
    seen[threadIdx.x] = data[(threadIdx.x + 1) % blockDim.x];
}

// The same, within a warp.
KERNEL(neighbours_of_a_warp) {
    data[threadIdx.x] = threadIdx.x;
    UNLESS_BROKEN(__syncwarp();)
    seen[threadIdx.x] = data[threadIdx.x ^ 1];
}

// The same, by a named barrier that the second warp only arrives at.
KERNEL(named_barrier) {
    if (threadIdx.x >= 32) {
        data[threadIdx.x - 32] = threadIdx.x;
        UNLESS_BROKEN(asm volatile("bar.arrive 1, 64;" ::: "memory");)
    } else {
        UNLESS_BROKEN(asm volatile("bar.sync 1, 64;" ::: "memory");)
        seen[threadIdx.x] = data[threadIdx.x];
    }
}

// Handed over by a flag in shared memory, which is released and acquired.
KERNEL(flag_in_shared_memory) {
    __shared__ unsigned flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        data[0] = 42;
        UNLESS_BROKEN(__threadfence_block();)
        atomicExch(&flag, 1);
    } else if (threadIdx.x == 1) {
        while (atomicAdd(&flag, 0) == 0) {}
        UNLESS_BROKEN(__threadfence_block();)
        seen[0] = data[0];
    }
}

// All threads store to the other PE, and one sets a flag there.
KERNEL(one_signals_for_all) {
    int *there = (int *)nvshmem_ptr(data, OTHER);
    there[threadIdx.x] = 10 + threadIdx.x;
    UNLESS_BROKEN(__syncthreads();)
    if (threadIdx.x == 0) {
        __threadfence_system();
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, OTHER);
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
    }
    __syncthreads();
    seen[threadIdx.x] = data[threadIdx.x];
}

// All threads write what the block then puts together.
KERNEL(the_block_puts) {
    data[64 + threadIdx.x] = threadIdx.x;
    UNLESS_BROKEN(__syncthreads();)
    nvshmemx_int_put_block(data, data + 64, blockDim.x, OTHER);
}

// Two threads put to the same place, one behind the other.
KERNEL(two_put) {
    if (ME != 0) return;
    if (threadIdx.x == 0) { nvshmem_int_p(data, 1, 1); nvshmem_quiet(); }
    UNLESS_BROKEN(__syncthreads();)
    if (threadIdx.x == 1) { nvshmem_int_p(data, 2, 1); nvshmem_quiet(); }
}

// The threads of two launches, of which the second has more, use the same words.
KERNEL(one_after_the_other) {
    data[threadIdx.x] += 1;
    UNLESS_BROKEN(__syncthreads();)
    seen[threadIdx.x] = data[blockDim.x - 1 - threadIdx.x];
}

// One thread completes or orders what others have issued, which it has counted. Without fences it does not come after them: then
// its quiet, or fence, is enough only if that is the PE's.
#define ORDER_FOR_OTHERS(PUT, ORDER)                                                                                   \
    __shared__ unsigned issued;                                                                                        \
    if (threadIdx.x == 0) issued = 0;                                                                                  \
    __syncthreads();                                                                                                   \
    if (threadIdx.x != 0) {                                                                                            \
        PUT;                                                                                                           \
        UNLESS_BROKEN(__threadfence_block();)                                                                          \
        atomicAdd(&issued, 1);                                                                                         \
    } else {                                                                                                           \
        while (atomicAdd(&issued, 0) < blockDim.x - 1) {}                                                              \
        UNLESS_BROKEN(__threadfence_block();)                                                                          \
        ORDER;                                                                                                         \
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, OTHER);                                                      \
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);                                                          \
    }                                                                                                                  \
    __syncthreads();                                                                                                   \
    seen[threadIdx.x] = data[threadIdx.x];
KERNEL(quiet_for_others) { ORDER_FOR_OTHERS(nvshmem_int_p(data + threadIdx.x, threadIdx.x, OTHER), nvshmem_quiet()) }
KERNEL(fence_for_others) { ORDER_FOR_OTHERS(nvshmem_int_p(data + threadIdx.x, threadIdx.x, OTHER), nvshmem_fence()) }
KERNEL(quiet_for_others_nbi) {
    data[64 + threadIdx.x] = threadIdx.x;
    ORDER_FOR_OTHERS(nvshmem_int_put_nbi(data + threadIdx.x, data + 64 + threadIdx.x, 1, OTHER), nvshmem_quiet())
}

// One warp says that a word may be written anew when it has read it. BROKEN: it reads once more after that.
KERNEL(reads_behind_an_arrival) {
    if (threadIdx.x < 32) {
        int value = data[threadIdx.x];
        asm volatile("bar.arrive 1, 64;" ::: "memory");
#ifdef BROKEN
        value = data[threadIdx.x];
#endif
        seen[threadIdx.x] = value;
        asm volatile("bar.sync 2, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        data[threadIdx.x - 32] = 1;
        asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
}

// The same by the barrier of a cluster of one block, whose two halves every thread calls.
KERNEL(reads_behind_a_clusters_arrival) {
    int value = data[threadIdx.x];
    asm volatile("barrier.cluster.arrive;" ::: "memory");
#ifdef BROKEN
    value = data[threadIdx.x];
#endif
    asm volatile("barrier.cluster.wait;" ::: "memory");
    data[threadIdx.x ^ 32] = 1;
    asm volatile("barrier.cluster.arrive;" ::: "memory");
    seen[threadIdx.x] = value;
    asm volatile("barrier.cluster.wait;" ::: "memory");
}

// Who has only arrived knows nothing of the others yet. BROKEN: it reads at once.
KERNEL(reads_before_the_clusters_wait) {
    data[threadIdx.x] = threadIdx.x;
    asm volatile("barrier.cluster.arrive;" ::: "memory");
    UNLESS_BROKEN(asm volatile("barrier.cluster.wait;" ::: "memory");)
    seen[threadIdx.x] = data[threadIdx.x ^ 1];
#ifdef BROKEN
    asm volatile("barrier.cluster.wait;" ::: "memory");
#endif
}

// An arrival that is relaxed tells nothing.
KERNEL(arrives_relaxed_at_the_cluster) {
    data[threadIdx.x] = threadIdx.x;
#ifdef BROKEN
    asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#else
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
    asm volatile("barrier.cluster.wait;" ::: "memory");
    seen[threadIdx.x] = data[threadIdx.x ^ 1];
}
