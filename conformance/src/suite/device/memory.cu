// Memory of peers by pointer: loads, stores and atomics of the system's scope, and what PTX's memory model orders among them.
#include "kernel.h"

#define PEER(TYPE, ADDRESS) ((TYPE *)nvshmem_ptr(ADDRESS, NEXT))
#define SPIN(CONDITION) while (!(CONDITION)) {}
typedef unsigned long long word_t;

__device__ word_t load_acquire(const void *at) {
    word_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
__device__ word_t load_relaxed(const void *at) {
    word_t value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}
__device__ void store_release(void *at, word_t value) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
__device__ void store_relaxed(void *at, word_t value) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
__device__ void add_release(void *at, word_t value) {
    asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
__device__ void add_relaxed(void *at, word_t value) {
    asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

// Each PE stores data at the next one, and then a flag; it waits for its own flag and reads what has come.
KERNEL(pointer_store) {
    *PEER(int, data) = in[3];
    __threadfence_system();
    *PEER(volatile uint64_t, words) = 1;
    SPIN(*(volatile uint64_t *)words == 1)
    __threadfence_system();
    out[0] = *data;
}
KERNEL(pointer_store_without_fence) {
    *PEER(int, data) = in[3];
    *PEER(volatile uint64_t, words) = 1;
    SPIN(*(volatile uint64_t *)words == 1)
    __threadfence_system();
    out[0] = *data;
}
KERNEL(pointer_release) {
    *PEER(int, data) = in[3];
    store_release(PEER(void, words), 1);
    SPIN(load_acquire(words) == 1)
    out[0] = *data;
}
// The data may still be on its way, or may have been read before the flag. These kernels do not record it: the simulator notes the race, but has
// one copy of the memory, so it never shows what is old.
KERNEL(pointer_relaxed) {
    *PEER(int, data) = in[3];
    store_relaxed(PEER(void, words), 1);
    SPIN(load_acquire(words) == 1)
    out[0] = *data >= 0;
}
KERNEL(pointer_relaxed_with_fences) {
    *PEER(int, data) = in[3];
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    store_relaxed(PEER(void, words), 1);
    SPIN(load_relaxed(words) == 1)
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    out[0] = *data;
}
KERNEL(pointer_poll_without_fence) {
    *PEER(int, data) = in[3];
    store_release(PEER(void, words), 1);
    SPIN(load_relaxed(words) == 1)
    out[0] = *data >= 0;
}
KERNEL(pointer_add_release) {
    const int n = N;
    for (int pe = 0; pe < n; pe++) {
        ((int *)nvshmem_ptr(data, pe))[ME] = in[3];
        add_release(nvshmem_ptr(words, pe), 1);
    }
    SPIN(load_acquire(words) == n)
    for (int pe = 0; pe < n; pe++) out[pe] = data[pe];
}
KERNEL(pointer_add_relaxed) {
    const int n = N;
    for (int pe = 0; pe < n; pe++) {
        ((int *)nvshmem_ptr(data, pe))[ME] = in[3];
        add_relaxed(nvshmem_ptr(words, pe), 1);
    }
    SPIN(load_acquire(words) == n)
    for (int pe = 0; pe < n; pe++) out[pe] = data[pe] >= 0;
}

// With NVSHMEM's fence, quiet and signals.
KERNEL(pointer_store_then_fence) {
    *PEER(int, data) = in[3];
    nvshmem_fence();
    nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_SET, NEXT);
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    out[0] = *data;
}
KERNEL(pointer_store_then_quiet) {
    *PEER(int, data) = in[3];
    nvshmem_quiet();
    nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_SET, NEXT);
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    out[0] = *data;
}
KERNEL(pointer_load_after_signal) {
    data[0] = in[3];
    __threadfence_system();
    nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_SET, NEXT);
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    out[0] = *(int *)nvshmem_ptr(data, (ME + N - 1) % N);
}

// Loads and vectors.
KERNEL(pointer_load) { out[0] = *PEER(int, in + 1); }
KERNEL(pointer_load_of_vectors) {
    const int2 two = *PEER(int2, in + 2);
    const int4 four = *PEER(int4, in + 4);
    out[0] = two.x;
    out[1] = two.y;
    *(int4 *)(out + 4) = four;
}
KERNEL(pointer_store_of_vectors) {
    *PEER(int2, data) = make_int2(in[0], in[1]);
    *PEER(int4, data + 4) = make_int4(in[2], in[3], in[4], in[5]);
}
KERNEL(pointer_store_of_every_size) {
    *PEER(signed char, data) = -2;
    *PEER(short, data + 1) = -3;
    *PEER(float, data + 2) = 1.5f;
    *PEER(double, data + 4) = -0.25;
}
KERNEL(pointer_to_each) {
    for (int pe = 0; pe < N; pe++) ((int *)nvshmem_ptr(data, pe))[ME] = in[pe];
}

// Atomics of the system's scope, on words of PE 0.
#define OF_PE_0(TYPE, ADDRESS) ((TYPE *)nvshmem_ptr(ADDRESS, 0))
KERNEL(pointer_atomic_add) { out[0] = atomicAdd_system(OF_PE_0(int, data), 1 + ME); }
KERNEL(pointer_atomic_of_each_kind) {
    atomicOr_system(OF_PE_0(int, data), 1 << ME);
    atomicXor_system(OF_PE_0(int, data + 1), 3 << ME);
    atomicMax_system(OF_PE_0(int, data + 2), 5 + ME);
    atomicMin_system(OF_PE_0(int, data + 3), -5 - ME);
    atomicAdd_system(OF_PE_0(word_t, words), 1ull << 32);
}
KERNEL(pointer_exchange) { out[0] = atomicExch_system(OF_PE_0(int, data), 1 + ME); }
KERNEL(pointer_compare_and_swap) { out[0] = atomicCAS_system(OF_PE_0(int, data), 0, 1 + ME); }
// Both PEs add to a number of PE 0, without an atomic, each while it has the lock.
KERNEL(pointer_lock) {
    volatile int *number = OF_PE_0(int, data);
    int *lock = OF_PE_0(int, words);
    SPIN(atomicCAS_system(lock, 0, 1) == 0)
    __threadfence_system();
    *number = *number + 1 + ME;
    __threadfence_system();
    atomicExch_system(lock, 0);
}

// Threads store, meet, and the first one releases for all; at the other side it acquires for all.
KERNEL(pointer_store_by_a_block) {
    const int i = threadIdx.x;
    if (i < 4) PEER(int, data)[i] = in[i];
    __syncthreads();
    if (FIRST) {
        store_release(PEER(void, words), 1);
        SPIN(load_acquire(words) == 1)
    }
    __syncthreads();
    if (i < 4) out[i] = data[i];
}
// PE 0 tells PE 1 by a flag, and PE 1 tells PE 2: what PE 0 stored has reached PE 2.
KERNEL(pointer_release_is_passed_on) {
    if (ME == 0) *(int *)nvshmem_ptr(data, 2) = in[3];
    if (ME > 0) SPIN(load_acquire(words) == 1)
    if (ME < 2) store_release(PEER(void, words), 1);
    if (ME == 2) out[0] = *data;
}
// Flags go back and forth.
KERNEL(pointer_ping_pong) {
    for (int round = 1; round <= 2; round++) {
        if (ME == 0) store_release(PEER(void, words), round);
        SPIN(load_acquire(words) >= round)
        if (ME == 1) store_release(PEER(void, words), round);
    }
}
// The multicast address of symmetric memory is null, or another one that moves with it; of other memory it is null.
KERNEL(multicast_pointer) {
    int local = 0;
    int *all = (int *)nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, data);
    out[0] = all == nullptr || all != data;
    out[1] = (int *)nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, data + 1) == (all == nullptr ? nullptr : all + 1);
    out[2] = nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, &local) == nullptr;
}

// A fence that releases and acquires, but is not sequential.
#define ACQ_REL_FENCE() asm volatile("fence.acq_rel.sys;" ::: "memory")

// A strong store arrives behind later loads of its thread, unless a sequential fence stands between them: both PEs may miss the other's store. They begin
// together.
#define STORE_THEN_LOAD(NAME, STORE, BETWEEN, LOAD)                                                                    \
    KERNEL(NAME) {                                                                                                     \
        void *theirs = PEER(void, words);                                                                              \
        nvshmem_barrier_all();                                                                                         \
        STORE;                                                                                                         \
        BETWEEN;                                                                                                       \
        out[0] = LOAD;                                                                                                 \
    }
STORE_THEN_LOAD(store_then_load, store_relaxed(theirs, 1), , load_relaxed(words))
STORE_THEN_LOAD(store_then_load_with_fences, store_relaxed(theirs, 1), __threadfence_system(), load_relaxed(words))
STORE_THEN_LOAD(store_then_load_with_one_fence, store_relaxed(theirs, 1), if (ME == 0) __threadfence_system(), load_relaxed(words))
STORE_THEN_LOAD(store_then_load_with_fences_of_the_gpu, store_relaxed(theirs, 1), __threadfence(), load_relaxed(words))
STORE_THEN_LOAD(release_then_acquire, store_release(theirs, 1), , load_acquire(words))
STORE_THEN_LOAD(add_then_load, add_relaxed(theirs, 1), , load_relaxed(words))
STORE_THEN_LOAD(add_then_load_with_fences, add_relaxed(theirs, 1), __threadfence_system(), load_relaxed(words))
STORE_THEN_LOAD(store_then_load_there, store_relaxed(theirs, 1), , load_relaxed(theirs))
STORE_THEN_LOAD(exchange_then_load, atomicExch_system((word_t *)theirs, 1), , load_relaxed(words))
STORE_THEN_LOAD(fetch_then_load, const word_t found = atomicAdd_system((word_t *)theirs, 1), , load_relaxed(words) + 2 * found)
STORE_THEN_LOAD(own_store_then_load_there, store_relaxed(words, 1), , load_relaxed(theirs))
KERNEL(blocks_store_then_load) {
    const int mine = blockIdx.x;
    store_relaxed(words + mine, 1);
    out[mine] = load_relaxed(words + 1 - mine);
}

// Two strong stores of a thread arrive in any order, unless a fence stands between them.
#define DATA_THEN_FLAG(NAME, BETWEEN)                                                                                  \
    KERNEL(NAME) {                                                                                                     \
        if (ME == 0) {                                                                                                 \
            store_relaxed(PEER(void, words + 1), in[3]);                                                               \
            BETWEEN;                                                                                                   \
            store_relaxed(PEER(void, words), 1);                                                                       \
        } else {                                                                                                       \
            SPIN(load_acquire(words) == 1)                                                                             \
            out[0] = load_relaxed(words + 1);                                                                          \
        }                                                                                                              \
    }
DATA_THEN_FLAG(strong_data_then_flag, )
DATA_THEN_FLAG(strong_data_then_flag_with_fence, __threadfence_system())
DATA_THEN_FLAG(strong_data_then_flag_with_acq_rel_fence, ACQ_REL_FENCE())
STORE_THEN_LOAD(store_then_load_with_acq_rel_fences, store_relaxed(theirs, 1), ACQ_REL_FENCE(), load_relaxed(words))
STORE_THEN_LOAD(store_then_load_with_one_acq_rel_fence, store_relaxed(theirs, 1), if (ME == 0) ACQ_REL_FENCE(); else __threadfence_system(), load_relaxed(words))
STORE_THEN_LOAD(own_store_then_load_there_with_fences, store_relaxed(words, 1), __threadfence_system(), load_relaxed(theirs))

// A strong load behind a relaxed look, of what was stored before the flag.
#define LOOK_THEN_LOAD(NAME, BETWEEN)                                                                                  \
    KERNEL(NAME) {                                                                                                     \
        if (ME == 0) {                                                                                                 \
            store_relaxed(PEER(void, words + 1), in[3]);                                                               \
            __threadfence_system();                                                                                    \
            store_relaxed(PEER(void, words), 1);                                                                       \
        } else {                                                                                                       \
            SPIN(load_relaxed(words) == 1)                                                                             \
            BETWEEN;                                                                                                   \
            out[0] = load_relaxed(words + 1);                                                                          \
        }                                                                                                              \
    }
LOOK_THEN_LOAD(relaxed_look_then_load, )
LOOK_THEN_LOAD(relaxed_look_then_load_with_fence, __threadfence_system())
