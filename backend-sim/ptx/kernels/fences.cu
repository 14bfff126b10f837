// PE 0 stores strongly to PE 1, with a fence behind that releases and acquires but is not sequential. Then it tells PE 1 of that in several ways.
#include <nvshmem.h>
#include <nvshmemx.h>

typedef unsigned long long word_t;

#define TELLS(NAME, TELL)                                                                                              \
    extern "C" __global__ void NAME(uint64_t *words, uint64_t *seen) {                                                 \
        volatile word_t *theirs = (volatile word_t *)nvshmem_ptr(words, 1 - nvshmem_my_pe());                          \
        const int thread = threadIdx.x;                                                                                \
        if (nvshmem_my_pe() == 0) {                                                                                    \
            if (thread == 32) {                                                                                        \
                theirs[1] = 1;                                                                                         \
                asm volatile("fence.acq_rel.sys;" ::: "memory");                                                       \
            }                                                                                                          \
            TELL;                                                                                                      \
        } else if (thread == 0) {                                                                                      \
            const uint64_t told = nvshmem_signal_fetch(words);                                                         \
            seen[0] = 2 * told + ((volatile word_t *)words)[1];                                                        \
        }                                                                                                              \
    }

TELLS(by_a_store, if (thread == 32) theirs[0] = 1)
TELLS(by_a_store_of_another_thread, __syncthreads(); if (thread == 0) theirs[0] = 1)
TELLS(by_an_atomic, if (thread == 32 && atomicAdd_system((word_t *)theirs, 1) > 0) __trap())
TELLS(by_a_signal, if (thread == 32) nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_SET, 1))
TELLS(by_a_call_of_the_block, nvshmemx_uint64_put_signal_block(words + 2, words + 3, 1, words, 1, NVSHMEM_SIGNAL_SET, 1))
TELLS(not_behind_the_fence, if (thread == 0) theirs[0] = 1)
