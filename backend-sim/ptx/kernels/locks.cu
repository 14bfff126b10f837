// Loops that compare and swap a word until they have found what they look for.
#include <nvshmem.h>

__device__ int lock;

// Adds to a number of PE 0 under a spin lock that all PEs share. `unlock` gives it back.
template <typename Unlock>
__device__ void add_under_a_lock(int *locks, int *sum, Unlock unlock) {
    if (threadIdx.x == 0) {
        int *shared = (int *)nvshmem_ptr(locks, 0), *number = (int *)nvshmem_ptr(sum, 0), found;
        do {
            asm volatile("atom.acquire.sys.global.cas.b32 %0, [%1], 0, 1;" : "=r"(found) : "l"(shared) : "memory");
        } while (found != 0);
        *number = *number + 1;
        unlock(shared);
    }
}

extern "C" __global__ void under_a_lock(int *locks, int *sum, int *) {
    add_under_a_lock(locks, sum, [](int *lock) { asm volatile("st.release.sys.global.b32 [%0], 0;" ::"l"(lock) : "memory"); });
}

// Who unlocks tells nothing.
extern "C" __global__ void under_a_relaxed_lock(int *locks, int *sum, int *) {
    add_under_a_lock(locks, sum, [](int *lock) { asm volatile("st.relaxed.sys.global.b32 [%0], 0;" ::"l"(lock) : "memory"); });
}

// Each block of a PE in turn, by CUDA's own names.
extern "C" __global__ void blocks_under_a_lock(int *, int *sum, int *) {
    if (threadIdx.x == 0) {
        while (atomicCAS(&lock, 0, 1) != 0) {}
        __threadfence();
        *sum = *sum + 1;
        __threadfence();
        atomicExch(&lock, 0);
    }
}

// As Triton-distributed's barriers of ranks do: each sets a flag at each, which must be down, and takes its own down again.
__device__ void meet(int *flags) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    __syncthreads();
    if (threadIdx.x < n) {
        int *theirs = (int *)nvshmem_ptr(flags, threadIdx.x) + me, *mine = flags + threadIdx.x, found;
        do {
            asm volatile("atom.release.sys.global.cas.b32 %0, [%1], 0, 1;" : "=r"(found) : "l"(theirs) : "memory");
        } while (found != 0);
        do {
            asm volatile("atom.acquire.sys.global.cas.b32 %0, [%1], 1, 0;" : "=r"(found) : "l"(mine) : "memory");
        } while (found != 1);
    }
    __syncthreads();
}

extern "C" __global__ void meets(int *flags, int *data, int *seen) {
    const int other = nvshmem_n_pes() - 1 - nvshmem_my_pe();
    for (int round = 1; round <= 2; round++) {
        if (threadIdx.x == 0) *(int *)nvshmem_ptr(data, other) = round;
        meet(flags);
        if (threadIdx.x == 0) seen[round - 1] = *data;
        meet(flags);
    }
}

// As CUDA programs often write it: whoever finds the lock taken takes it again.
extern "C" __global__ void under_an_exchanged_lock(int *locks, int *sum, int *) {
    if (threadIdx.x == 0) {
        int *shared = (int *)nvshmem_ptr(locks, 0), *number = (int *)nvshmem_ptr(sum, 0);
        while (atomicExch_system(shared, 1) != 0) {}
        __threadfence_system();
        *number = *number + 1;
        __threadfence_system();
        atomicExch_system(shared, 0);
    }
}

// Polls by atomics that change nothing. The first PE counts those who have come.
extern "C" __global__ void polls_by_atomics(int *words, int *sum, int *seen) {
    if (threadIdx.x == 0) {
        int *count = (int *)nvshmem_ptr(words, 0), *number = (int *)nvshmem_ptr(sum, 0);
        const int n = nvshmem_n_pes();
        if (nvshmem_my_pe() == 0) *number = n;
        __threadfence_system();
        atomicAdd_system(count, 1);
        while (atomicAdd_system(count, 0) < n) {}
        __threadfence_system();
        seen[0] = *number;
        while (atomicCAS_system(count, 0, 0) < n) __nanosleep(20);
    }
}

// Each thread takes eight tickets, and says which was the last.
extern "C" __global__ void takes_tickets(int *next, int *last, int *) {
    for (int i = 0; i < 8; i++) last[threadIdx.x] = atomicAdd(next, 1);
}

// As in CUTLASS's stream-K: the last block waits until all others have added to a counter, which it then zeroes. What it looks for is no constant.
extern "C" __global__ void collects(int *counts, int *sum, int *) {
    const int others = gridDim.x - 1;
    for (int tile = 0; tile < 2; tile++) {
        if (blockIdx.x < others) {
            __syncthreads();
            if (threadIdx.x == 0) {
                __threadfence();
                atomicAdd(counts + tile, 1);
            }
        } else if (threadIdx.x == 0) {
            while (atomicCAS(counts + tile, others, 0) != others) {}
            __threadfence();
            *sum = *sum + others;
        }
    }
}
