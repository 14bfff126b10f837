// Dekker's way into a critical section: each PE raises a flag at the other one, and enters if its own was not raised.
#include <nvshmem.h>

// A fence that releases and acquires, but is not sequential: a load behind it may come before a store in front of it.
#define ACQ_REL() asm volatile("fence.acq_rel.sys;" ::: "memory")

#define ENTERS(NAME, STORE, BETWEEN)                                                                                   \
    extern "C" __global__ void NAME(int *raised, int *inside) {                                                        \
        int *theirs = (int *)nvshmem_ptr(raised, 1 - nvshmem_my_pe());                                                 \
        STORE;                                                                                                         \
        BETWEEN;                                                                                                       \
        if (*(volatile int *)raised == 0) inside[0] = 1;                                                               \
    }

ENTERS(by_a_store, *(volatile int *)theirs = 1, __threadfence_system())
ENTERS(by_a_store_without_fence, *(volatile int *)theirs = 1, )
ENTERS(by_a_store_and_a_fence_of_the_gpu, *(volatile int *)theirs = 1, __threadfence())
ENTERS(by_a_store_and_a_fence_that_is_not_sequential, *(volatile int *)theirs = 1, ACQ_REL())
ENTERS(by_an_exchange, atomicExch_system(theirs, 1), __threadfence_system())
ENTERS(by_an_exchange_without_fence, atomicExch_system(theirs, 1), )
ENTERS(by_an_addition_without_fence, atomicAdd_system(theirs, 1), )
