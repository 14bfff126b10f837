// What the order of steps decides, though no single word says so. A search must try both orders.
#include <nvshmem.h>
#include <nvshmemx.h>

#define KERNEL(NAME) extern "C" __global__ void NAME(int *data, uint64_t *flags, int *seen)
#define THERE(POINTER) ((decltype(POINTER))nvshmem_ptr(POINTER, 1))

__device__ int load(int *word) {
    return *(volatile int *)word;
}

// A fence of thread 0 puts its message before what thread 1 stores to the other PE, if it has been made by then.
KERNEL(fenced_by_another) {
    if (nvshmem_my_pe() == 1) {
        if (threadIdx.x == 0) {
            while (*(volatile uint64_t *)flags != 1) {}
            __threadfence_system();
            *seen = load(data);
        }
    } else if (threadIdx.x == 0) {
        nvshmem_int_p(data, 7, 1);
        nvshmem_fence();
    } else {
        for (int i = 0; i < 6; i++) load(seen);
        *(volatile uint64_t *)THERE(flags) = 1;
    }
}

// The receiver takes a signal back by a plain store, before the sender may signal again.
KERNEL(taken_back) {
    for (uint64_t round = 1; round <= 2; round++) {
        if (nvshmem_my_pe() == 0) {
            nvshmem_int_put_signal(data, data + 1, 1, flags, 1, NVSHMEM_SIGNAL_SET, 1);
            nvshmem_signal_wait_until(flags + 1, NVSHMEM_CMP_GE, round);
        } else {
            nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
            *seen += *data;
            flags[0] = 0, __threadfence_system();
            nvshmemx_signal_op(flags + 1, round, NVSHMEM_SIGNAL_SET, 0);
        }
    }
}

// The lower half of a word in shared memory overflows, unless the word as a whole is added to before.
KERNEL(carry) {
    __shared__ unsigned long long word;
    if (threadIdx.x == 0) word = 0xffffffffull;
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd((unsigned *)&word, 1u);
    } else {
        for (int i = 0; i < 3; i++) load(seen);
        atomicAdd(&word, 1ull);
    }
    __syncthreads();
    if (threadIdx.x == 0) *seen = word >> 32;
}

// Two threads store to one word of the other PE.
KERNEL(two_stores) {
    if (nvshmem_my_pe() == 0) {
        if (threadIdx.x == 1) for (int i = 0; i < 3; i++) load(seen);
        *THERE(data) = 1 + threadIdx.x;
    }
}

// A thread loads what another one of its PE stores there.
KERNEL(load_in_flight) {
    if (nvshmem_my_pe() == 0) {
        if (threadIdx.x == 0) {
            *THERE(data) = 1;
        } else {
            for (int i = 0; i < 3; i++) load(seen);
            seen[1] = load(THERE(data));
        }
    }
}

// More blocks than a GPU holds: the last one begins when another has ended, whichever that is.
KERNEL(late_block) {
    if (blockIdx.x == 0 && threadIdx.x == 0) *data = 1;
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) *seen = *data;
}

// An mbarrier that takes two arrivals.
__device__ unsigned mbarrier_of_two(uint64_t *barrier) {
    unsigned place = (unsigned)__cvta_generic_to_shared(barrier);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 2;" ::"r"(place) : "memory");
    __syncthreads();
    return place;
}
__device__ uint64_t arrive(unsigned place) {
    uint64_t token;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(place) : "memory");
    return token;
}
__device__ void wait(unsigned place, uint64_t token) {
    int done = 0;
    while (!done) {
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(place), "l"(token)
                     : "memory");
    }
}

// Of three arrivals at an mbarrier that takes two, the third is one of the next phase: then somebody waits for ever.
KERNEL(arrivals) {
    __shared__ alignas(8) uint64_t barrier;
    unsigned place = mbarrier_of_two(&barrier);
    uint64_t token = arrive(place);
    if (threadIdx.x == 1) {
        arrive(place);
    } else {
        wait(place, token);
    }
}

// Each of two threads arrives in two phases, the second time behind its wait for the first.
KERNEL(two_phases) {
    __shared__ alignas(8) uint64_t barrier;
    unsigned place = mbarrier_of_two(&barrier);
    for (int phase = 0; phase < 2; phase++) wait(place, arrive(place));
}

// A thread asks again and again; another one takes the question back once, and answers when it is asked anew.
KERNEL(asks_again) {
    volatile uint64_t *question = flags, *answer = flags + 1;
    if (threadIdx.x == 0) {
        do *question = 1;
        while (*answer == 0);
    } else {
        while (*question == 0) {}
        *question = 0;
        while (*question == 0) {}
        *answer = 1;
    }
}
