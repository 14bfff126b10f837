// Strong loads that PTX lets find an older value, because nothing but the program's text puts a store or an update before them. Each kernel has a
// twin (`_ordered`) in which fences do.
#include <nvshmem.h>
#include <nvshmemx.h>

typedef unsigned long long word_t;

#define FENCE __threadfence_system()
#define SEQUENTIAL asm volatile("fence.sc.sys;" ::: "memory")
#define NOTHING ((void)0)

__device__ word_t acquired(volatile word_t *word) {
    word_t found;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(found) : "l"(word) : "memory");
    return found;
}

#define KERNELS(NAME, BODY, ORDER)                                                                                     \
    extern "C" __global__ void NAME(uint64_t *words, uint64_t *seen) { BODY(words, seen, NOTHING) }                    \
    extern "C" __global__ void NAME##_ordered(uint64_t *words, uint64_t *seen) { BODY(words, seen, ORDER) }

#define OF(WORDS, PE) ((volatile word_t *)nvshmem_ptr(WORDS, PE))

// PE 0 stores data and a flag to PE 1, in order. PE 1 looks at the flag and loads the data.
#define LOOK(words, seen, ORDER)                                                                                       \
    if (nvshmem_my_pe() == 0) {                                                                                        \
        OF(words, 1)[1] = 1;                                                                                           \
        FENCE;                                                                                                         \
        OF(words, 1)[0] = 1;                                                                                           \
    } else {                                                                                                           \
        volatile word_t *own = (volatile word_t *)words;                                                               \
        while (own[0] == 0)                                                                                            \
            ;                                                                                                          \
        ORDER;                                                                                                         \
        seen[0] = own[1];                                                                                              \
    }
KERNELS(looks, LOOK, FENCE)

// The same, with a barrier between the thread that looks and the thread that loads.
#define LOOK_FOR_ANOTHER(words, seen, ORDER)                                                                           \
    if (nvshmem_my_pe() == 0) {                                                                                        \
        if (threadIdx.x == 0) {                                                                                        \
            OF(words, 1)[1] = 1;                                                                                       \
            FENCE;                                                                                                     \
            OF(words, 1)[0] = 1;                                                                                       \
        }                                                                                                              \
    } else {                                                                                                           \
        volatile word_t *own = (volatile word_t *)words;                                                               \
        if (threadIdx.x == 0) {                                                                                        \
            while (own[0] == 0)                                                                                        \
                ;                                                                                                      \
            ORDER;                                                                                                     \
        }                                                                                                              \
        __syncthreads();                                                                                               \
        if (threadIdx.x == 32)                                                                                         \
            seen[0] = own[1];                                                                                          \
    }
KERNELS(looks_for_another, LOOK_FOR_ANOTHER, FENCE)

// PE 0 stores data and a flag in its own memory. PE 1 acquires the flag there.
#define STORE(words, seen, ORDER)                                                                                      \
    if (nvshmem_my_pe() == 0) {                                                                                        \
        volatile word_t *own = (volatile word_t *)words;                                                               \
        own[1] = 1;                                                                                                    \
        ORDER;                                                                                                         \
        own[0] = 1;                                                                                                    \
    } else {                                                                                                           \
        volatile word_t *theirs = OF(words, 0);                                                                        \
        while (acquired(theirs) == 0)                                                                                  \
            ;                                                                                                          \
        seen[0] = theirs[1];                                                                                           \
    }
KERNELS(stores, STORE, FENCE)

// Each PE raises a flag in its own memory and asks for the other's: at least one must see it.
#define RAISE(words, seen, ORDER)                                                                                      \
    ((volatile word_t *)words)[0] = 1;                                                                                 \
    ORDER;                                                                                                             \
    seen[0] = OF(words, 1 - nvshmem_my_pe())[0];
KERNELS(raises, RAISE, SEQUENTIAL)

// A lock in PE 0's memory, and a number beside it that is loaded and stored under the lock.
#define LOCK(words, seen, ORDER)                                                                                       \
    word_t *lock = (word_t *)nvshmem_ptr(words, 0);                                                                    \
    while (atomicCAS_system(lock, 0, 1) != 0)                                                                          \
        ;                                                                                                              \
    ORDER;                                                                                                             \
    seen[0] = OF(words, 0)[1];                                                                                         \
    OF(words, 0)[1] = seen[0] + 1;                                                                                     \
    ORDER;                                                                                                             \
    atomicExch_system(lock, 0);
KERNELS(locks, LOCK, FENCE)

// A fence that releases and acquires does not put a load behind a store.
extern "C" __global__ void raises_and_releases(uint64_t *words, uint64_t *seen) {
    RAISE(words, seen, asm volatile("fence.acq_rel.sys;" ::: "memory"))
}

// A host's signal says that its atomic has come: the kernel loads what the atomic has left.
#define CALL(words, seen, ORDER)                                                                                       \
    volatile word_t *own = (volatile word_t *)words;                                                                   \
    if (nvshmem_my_pe() == 0) {                                                                                        \
        nvshmem_uint64_atomic_set(words + 1, 1, 1);                                                                    \
        nvshmem_fence();                                                                                               \
        nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_SET, 1);                                                           \
    } else {                                                                                                           \
        while (own[0] == 0)                                                                                            \
            ;                                                                                                          \
        ORDER;                                                                                                         \
        seen[0] = own[1];                                                                                              \
    }
KERNELS(looks_at_a_signal, CALL, nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1))

// Loads that can miss nothing.

extern "C" __global__ void loads_the_flag_again(uint64_t *words, uint64_t *seen) {
    if (nvshmem_my_pe() == 0) {
        OF(words, 1)[0] = 1;
        return;
    }
    while (*(volatile word_t *)words == 0)
        ;
    seen[0] = *(volatile word_t *)words;
}

extern "C" __global__ void waits_twice(uint64_t *words, uint64_t *seen) {
    volatile word_t *own = (volatile word_t *)words;
    if (nvshmem_my_pe() == 0) {
        OF(words, 1)[1] = 1;
        FENCE;
        OF(words, 1)[0] = 1;
        return;
    }
    while (own[0] == 0)
        ;
    while (own[1] == 0)
        ;
    seen[0] = own[1];
}

// Every thread takes a ticket of PE 0, twice, with a barrier of the grid's PEs between.
extern "C" __global__ void takes_tickets(uint64_t *words, uint64_t *seen) {
    word_t *tickets = (word_t *)nvshmem_ptr(words, 0);
    word_t sum = atomicAdd_system(tickets, 1);
    nvshmemx_barrier_all_block();
    sum += atomicAdd_system(tickets, 1);
    atomicMax((word_t *)seen, sum);
}

// Of two atomics that look, one comes first: whoever came second would have to find what only the other's later one has left.
extern "C" __global__ void counts(uint64_t *words, uint64_t *seen) {
    const word_t before = atomicAdd_system((word_t *)words, 1);
    seen[0] = before + atomicAdd_system((word_t *)nvshmem_ptr(words, 1 - nvshmem_my_pe()), 1);
}

// What nobody looks at may come in any order.
extern "C" __global__ void adds_only(uint64_t *words, uint64_t *seen) {
    word_t *theirs = (word_t *)nvshmem_ptr(words, 1 - nvshmem_my_pe());
    atomicAdd_system(theirs, 1);
    atomicAdd_system((word_t *)words + 1, 1);
    atomicAdd_system(theirs + 1, 1);
    atomicAdd_system((word_t *)words, 1);
    nvshmemx_barrier_all_block();
    seen[0] = ((volatile word_t *)words)[0] + ((volatile word_t *)words)[1];
}

// A quiet has completed the store: whoever comes behind the other PE's quiet finds it.
extern "C" __global__ void raises_and_completes(uint64_t *words, uint64_t *seen) {
    OF(words, 1 - nvshmem_my_pe())[0] = 1;
    nvshmem_quiet();
    seen[0] = ((volatile word_t *)words)[0];
}

// The fence is another thread's, before the barrier of the block.
extern "C" __global__ void fences_for_another(uint64_t *words, uint64_t *seen) {
    if (threadIdx.x == 0) {
        ((volatile word_t *)words)[0] = 1;
        SEQUENTIAL;
    }
    __syncthreads();
    if (threadIdx.x == 32)
        seen[0] = OF(words, 1 - nvshmem_my_pe())[0];
}

// Two threads of a block raise flags: fences of the block's scope are enough.
__device__ void raise_in_block(uint64_t *words, uint64_t *seen, bool fences) {
    const int mine = threadIdx.x / 32;
    if (threadIdx.x % 32 != 0)
        return;
    ((volatile word_t *)words)[mine] = 1;
    if (fences)
        asm volatile("fence.sc.cta;" ::: "memory");
    atomicAdd((word_t *)seen, ((volatile word_t *)words)[1 - mine]);
}
extern "C" __global__ void raises_in_a_block(uint64_t *words, uint64_t *seen) { raise_in_block(words, seen, false); }
extern "C" __global__ void raises_in_a_block_ordered(uint64_t *words, uint64_t *seen) { raise_in_block(words, seen, true); }

// Fences of the GPU's scope order nothing between two PEs.
extern "C" __global__ void raises_with_fences_of_the_gpu(uint64_t *words, uint64_t *seen) {
    RAISE(words, seen, asm volatile("fence.sc.gpu;" ::: "memory"))
}

// A compare_swap that finds another value has written nothing that could be missed.
extern "C" __global__ void swaps_nothing(uint64_t *words, uint64_t *seen) {
    volatile word_t *own = (volatile word_t *)words;
    if (nvshmem_my_pe() == 0) {
        if (nvshmem_uint64_atomic_compare_swap(words + 1, 5, 6, 1) == 5)
            __trap();
        nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_SET, 1);
        return;
    }
    while (own[0] == 0)
        ;
    seen[0] = own[1];
}

// PE 1 loads the data until it is there, and counts its loads in memory: so the loop does not only wait.
extern "C" __global__ void loads_until(uint64_t *words, uint64_t *seen) {
    if (nvshmem_my_pe() == 0) {
        OF(words, 1)[1] = 1;
        FENCE;
        OF(words, 1)[0] = 1;
        return;
    }
    volatile word_t *own = (volatile word_t *)words;
    while (own[0] == 0)
        ;
    word_t found;
    do {
        found = own[1];
        seen[0] += 1;
    } while (found == 0);
}

// PE 0 releases plain data by a flag of PE 1. A thread of PE 1 reads the flag, and then another thread changes it without a release. Whoever acquires the
// change has read what was released.
extern "C" __global__ void acquires_behind_another(uint64_t *words, uint64_t *seen) {
    volatile word_t *flag = OF(words, 1), *result = (volatile word_t *)seen;
    if (nvshmem_my_pe() == 0) {
        if (threadIdx.x == 0) {
            ((uint64_t *)nvshmem_ptr(words, 1))[1] = 7;
            asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(flag), "l"(1ull) : "memory");
        }
    } else if (threadIdx.x == 0) {
        while (flag[0] == 0)
            ;
        result[0] = 1;
        while (acquired(flag) != 2)
            ;
        result[0] = words[1];
    } else if (threadIdx.x == 32) {
        while (result[0] == 0)
            ;
        flag[0] = 2;
    }
}

// PE 1 and PE 2 add to a word of PE 0. PE 0 acquires what PE 2 has done, and of PE 1 it has only seen a flag: which sum it must find depends on who was first.
extern "C" __global__ void adds_in_two_orders(uint64_t *words, uint64_t *seen) {
    volatile word_t *sum = OF(words, 0);
    switch (nvshmem_my_pe()) {
    case 0:
        while (sum[1] == 0)
            ;
        while (acquired(sum + 2) == 0)
            ;
        seen[0] = sum[0];
        break;
    case 1:
        atomicAdd_system((word_t *)sum, 1);
        sum[1] = 1;
        break;
    case 2:
        atomicAdd_system((word_t *)sum, 2);
        FENCE;
        sum[2] = 1;
    }
}

// A call that waits for a word has read it: later loads find nothing older.
extern "C" __global__ void waits_by_a_call(uint64_t *words, uint64_t *seen) {
    if (nvshmem_my_pe() == 0) {
        OF(words, 1)[1] = 1;
        FENCE;
        OF(words, 1)[0] = 1;
        return;
    }
    volatile word_t *own = (volatile word_t *)words;
    while (own[0] == 0)
        ;
    nvshmem_uint64_wait_until(words + 1, NVSHMEM_CMP_EQ, 1);
    seen[0] = own[1];
}

// An atomic finds the newest value, also a compare-and-swap that writes nothing. This one acquires plain data.
extern "C" __global__ void compares_and_swaps(uint64_t *words, uint64_t *seen) {
    if (nvshmem_my_pe() == 0) {
        ((uint64_t *)nvshmem_ptr(words, 1))[2] = 7;
        asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(OF(words, 1) + 1), "l"(1ull) : "memory");
        FENCE;
        OF(words, 1)[0] = 1;
        return;
    }
    while (((volatile word_t *)words)[0] == 0)
        ;
    word_t found;
    asm volatile("atom.acquire.sys.cas.b64 %0, [%1], 5, 6;" : "=l"(found) : "l"(words + 1) : "memory");
    seen[0] = found == 1 ? words[2] : 0;
}

// PE 0 raises a flag. What its host has sent before that can be missed.
extern "C" __global__ void looks_for_a_host(uint64_t *words, uint64_t *seen) {
    if (nvshmem_my_pe() == 0) {
        OF(words, 1)[0] = 1;
        return;
    }
    volatile word_t *own = (volatile word_t *)words;
    while (own[0] == 0)
        ;
    seen[0] = own[1];
}
