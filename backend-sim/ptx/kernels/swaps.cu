// Locks on PE 0 that all PEs take by calls: who holds it adds one to a number there, `rounds` times.
#include <nvshmem.h>

template <typename Take>
__device__ void add(int *data, uint64_t *lock, int rounds, bool completes, Take take) {
    for (int round = 0; round < rounds; round++) {
        take();
        nvshmem_int_p(data, nvshmem_int_g(data, 0) + 1, 0);
        if (completes) nvshmem_quiet();
        nvshmem_uint64_atomic_set(lock, 0, 0);
    }
}

#define COMPARE_SWAP [=] { while (nvshmem_uint64_atomic_compare_swap(lock, 0, 1, 0) != 0) {} }
#define SWAP [=] { while (nvshmem_uint64_atomic_swap(lock, 1, 0) != 0) {} }
// the lock has the number of who holds it, from 1 on
#define NAMED [=] { while (nvshmem_uint64_atomic_compare_swap(lock, 0, nvshmem_my_pe() + 1, 0)) {} }
// an attempt that fails counts
#define COUNTED [=] { for (int tried = 0; nvshmem_uint64_atomic_compare_swap(lock, 0, 1, 0) != 0; tried++) data[2] = tried; }

extern "C" __global__ void by_compare_swap(int *data, uint64_t *lock, int rounds) { add(data, lock, rounds, true, COMPARE_SWAP); }
extern "C" __global__ void by_swap(int *data, uint64_t *lock, int rounds) { add(data, lock, rounds, true, SWAP); }
extern "C" __global__ void by_name(int *data, uint64_t *lock, int rounds) { add(data, lock, rounds, true, NAMED); }
extern "C" __global__ void by_compare_swap_without_quiet(int *data, uint64_t *lock, int rounds) { add(data, lock, rounds, false, COMPARE_SWAP); }
extern "C" __global__ void by_swap_without_quiet(int *data, uint64_t *lock, int rounds) { add(data, lock, rounds, false, SWAP); }
extern "C" __global__ void counted(int *data, uint64_t *lock, int rounds) { add(data, lock, rounds, true, COUNTED); }

// Who takes it tells who took it before: the lock of the last one, and nothing is given back. Each PE waits for its turn.
extern "C" __global__ void in_turn(int *data, uint64_t *lock, int) {
    uint64_t me = nvshmem_my_pe();
    while (nvshmem_uint64_atomic_compare_swap(lock, me, me + 1, 0) != me) {}
    data[1] = nvshmem_int_g(data, 0);
}

// A lock that PE 0 never gives back.
extern "C" __global__ void kept(int *data, uint64_t *lock, int) {
    while (nvshmem_uint64_atomic_compare_swap(lock, 0, 1, 0) != 0) {}
}

// A thread of PE 0 puts and fences. Another one takes the lock of PE 1 meanwhile: behind the fence, its swap comes behind the put. PE 1 sees that it is taken.
extern "C" __global__ void beside_fence(int *data, uint64_t *lock, int) {
    if (nvshmem_my_pe() == 0) {
        if (threadIdx.x == 0) {
            nvshmem_int_p(data, 7, 1);
            nvshmem_fence();
        } else {
            while (nvshmem_uint64_atomic_compare_swap(lock, 0, 1, 1) != 0) {}
        }
    } else if (threadIdx.x == 0) {
        while (*(volatile uint64_t *)lock == 0) {}
        data[2] = *(volatile int *)data;
    }
}

// The number is changed before the lock is held.
extern "C" __global__ void too_late(int *data, uint64_t *lock, int rounds) {
    nvshmem_int_p(data, nvshmem_int_g(data, 0) + 1, 0);
    add(data, lock, rounds, true, COMPARE_SWAP);
}
