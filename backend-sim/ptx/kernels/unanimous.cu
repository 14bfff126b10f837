// Barriers of PEs in which each lane polls the flag of one PE, and all go on when all have seen theirs.
#include <nvshmem.h>

__device__ int load(const int *flag) {
    int found;
    asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(found) : "l"(flag) : "memory");
    return found;
}

__device__ void store(int *flag, int value) { asm volatile("st.release.sys.global.s32 [%0], %1;" ::"l"(flag), "r"(value) : "memory"); }

// The flags of all PEs, as a table in memory. Each thread sets one.
__device__ void arrive(int **table, int round) {
    if (threadIdx.x < nvshmem_n_pes()) store(table[threadIdx.x] + nvshmem_my_pe(), round);
}

// Each PE writes to the next one, `meet` orders that, and each reads what it has got.
template <typename Meet>
__device__ void rounds(int *flags, int *data, int *seen, int times, Meet meet) {
    __shared__ int *table[8];
    const int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
    if (threadIdx.x < nvshmem_n_pes()) table[threadIdx.x] = (int *)nvshmem_ptr(flags, threadIdx.x);
    __syncthreads();
    for (int round = 1; round <= times; round++) {
        if (threadIdx.x == 0) ((int *)nvshmem_ptr(data, next))[round] = round;
        __syncthreads();
        arrive(table, round);
        meet(round);
        if (threadIdx.x == 0) seen[round] = data[round];
        __syncthreads();
    }
}

// The lanes of a warp vote, also those that look at nothing; after a long time, they give up.
extern "C" __global__ void warp_votes(int *flags, int *data, int *seen) {
    rounds(flags, data, seen, 2, [=](int round) {
        const long long start = clock64();
        while (true) {
            const bool is_there = threadIdx.x >= nvshmem_n_pes() || load(flags + threadIdx.x) >= round;
            if (__all_sync(0xffffffff, is_there)) break;
            if (clock64() - start > 2000000000 && threadIdx.x < nvshmem_n_pes()) {
                printf("PE %d waits for PE %d\n", nvshmem_my_pe(), threadIdx.x);
                __trap();
            }
        }
    });
}

extern "C" __global__ void warp_votes_for_one(int *flags, int *data, int *seen) {
    const unsigned n = nvshmem_n_pes();
    rounds(flags, data, seen, 2, [=](int round) {
        while (__any_sync(0xffffffff, threadIdx.x < n && load(flags + threadIdx.x) < round)) __nanosleep(20);
    });
}

extern "C" __global__ void block_votes(int *flags, int *data, int *seen) {
    const unsigned n = nvshmem_n_pes();
    rounds(flags, data, seen, 2, [=](int round) {
        while (!__syncthreads_and(threadIdx.x >= n || load(flags + threadIdx.x) >= round)) {}
    });
}

// The flag of the first PE is not waited for.
extern "C" __global__ void forgets_one(int *flags, int *data, int *seen) {
    const unsigned n = nvshmem_n_pes();
    rounds(flags, data, seen, 2, [=](int round) {
        while (!__all_sync(0xffffffff, threadIdx.x == 0 || threadIdx.x >= n || load(flags + threadIdx.x) >= round)) {}
    });
}

// One round more is waited for than comes.
extern "C" __global__ void waits_for_another(int *flags, int *data, int *seen) {
    const unsigned n = nvshmem_n_pes();
    rounds(flags, data, seen, 1, [=](int round) {
        while (!__all_sync(0xffffffff, threadIdx.x >= n || load(flags + threadIdx.x) > round)) {}
    });
}

// As DeepEP's barriers of a node do: each PE adds to its own words, and others take that away again.
extern "C" __global__ void takes_away(int *flags, int *data, int *seen) {
    __shared__ int *table[8];
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), next = (me + 1) % n, t = threadIdx.x;
    if (t < n) table[t] = (int *)nvshmem_ptr(flags, t);
    if (t == 0) ((int *)nvshmem_ptr(data, next))[1] = 1;
    __threadfence_system();
    __syncthreads();
    if (t < n) {
        atomicAdd_system(table[me] + t, 1024);
        atomicSub_system(table[t] + me, 1024);
    }
    while (!__all_sync(0xffffffff, t >= n || load(table[me] + t) <= 0)) {}
    __syncthreads();
    if (t == 0) {
        seen[1] = data[1];
        seen[2] = 2;
    }
}

// One thread looks at the flags of both neighbours in turn.
extern "C" __global__ void looks_at_both(int *flags, int *data, int *seen) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    const int *left = flags + (me + n - 1) % n, *right = flags + (me + 1) % n;
    rounds(flags, data, seen, 2, [=](int round) {
        if (threadIdx.x == 0) while (load(left) < round || load(right) < round) {}
        __syncthreads();
    });
}

// The same by ballots.
extern "C" __global__ void warp_ballots(int *flags, int *data, int *seen) {
    const unsigned n = nvshmem_n_pes();
    rounds(flags, data, seen, 2, [=](int round) {
        while (__ballot_sync(0xffffffff, threadIdx.x >= n || load(flags + threadIdx.x) >= round) != 0xffffffff) {}
    });
}

extern "C" __global__ void warp_ballots_for_one(int *flags, int *data, int *seen) {
    const unsigned n = nvshmem_n_pes();
    rounds(flags, data, seen, 2, [=](int round) {
        while (__ballot_sync(0xffffffff, threadIdx.x < n && load(flags + threadIdx.x) < round)) __nanosleep(20);
    });
}

// The flag of the first PE is not waited for.
extern "C" __global__ void ballot_forgets_one(int *flags, int *data, int *seen) {
    const unsigned n = nvshmem_n_pes();
    rounds(flags, data, seen, 2, [=](int round) {
        while (__ballot_sync(0xffffffff, threadIdx.x == 0 || threadIdx.x >= n || load(flags + threadIdx.x) >= round) != 0xffffffff) {}
    });
}

// A function that is called votes. Each kernel has one of its own.
template <int KERNEL>
__device__ __noinline__ void wait_for_all(const int *flags, int round, int n) {
    while (!__all_sync(0xffffffff, threadIdx.x >= n || load(flags + threadIdx.x) >= round)) __nanosleep(20);
}

extern "C" __global__ void votes_in_a_function(int *flags, int *data, int *seen) {
    rounds(flags, data, seen, 2, [=](int round) { wait_for_all<0>(flags, round, nvshmem_n_pes()); });
}

__device__ __noinline__ int twice(int number) { return number + number; }

// One that is called does not vote, and the kernel does.
extern "C" __global__ void votes_beside_a_function(int *flags, int *data, int *seen) {
    const unsigned n = nvshmem_n_pes();
    rounds(flags, data, seen, 2, [=](int round) {
        while (!__all_sync(0xffffffff, threadIdx.x >= n || load(flags + threadIdx.x) >= round)) {}
        if (threadIdx.x == 0) seen[0] = twice(round) - 2 * round;
    });
}

// Lanes other than the first vote elsewhere, and count that: PE 1 says how often, until it has seen the flag.
extern "C" __global__ void votes_in_a_function_and_elsewhere(int *flags, int *data, int *seen) {
    if (nvshmem_my_pe() == 0 && threadIdx.x == 0) store((int *)nvshmem_ptr(flags, 1), 1);
    if (nvshmem_my_pe() != 1 || threadIdx.x >= 32) return;
    int votes = 0;
    if (threadIdx.x == 0) {
        wait_for_all<1>(flags, 1, 1);
    } else {
        while (!__all_sync(0xffffffff, true)) votes++;
    }
    if (threadIdx.x == 1) seen[0] = votes < 2 ? votes : 2;
}
