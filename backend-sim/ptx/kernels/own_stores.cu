// A kernel writes plainly to its own PE's memory and tells others, who then read it there or write to it.
#include <nvshmem.h>
#include <nvshmemx.h>

enum { DATA, SEEN, OTHER }; // the words of data

// What stands between the write and what tells of it.
#define NOTHING [] {}
#define SYSTEM_FENCE [] { __threadfence_system(); }
#define GPU_FENCE [] { __threadfence(); }
#define FENCE [] { nvshmem_fence(); }
#define QUIET [] { nvshmem_quiet(); }

// How PE 1 is told.
#define BY_SIGNAL [=] { nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1); }
#define BY_ATOMIC [=] { nvshmem_uint64_atomic_add(signal, 1, 1); }
#define BY_PUT_SIGNAL [=] { nvshmem_int_put_signal(data + OTHER, data + OTHER, 1, signal, 1, NVSHMEM_SIGNAL_SET, 1); }

// How PE 1 reads a word of PE 0, or writes to it.
#define BY_G [=] { return nvshmem_int_g(data + DATA, 0); }
#define BY_GET [=] { nvshmem_int_get(data + DATA, data + DATA, 1, 0); return data[DATA]; }
#define BY_LOAD [=] { return *(int *)nvshmem_ptr(data + DATA, 0); }
#define BY_P [=] { nvshmem_int_p(data + DATA, 7, 0); nvshmem_quiet(); return 7; }

// Thread 0 of PE 0 writes, or thread 1 does, and a barrier stands behind it. Thread 0 tells PE 1.
template <typename Order, typename Tell, typename Use> __device__ void pull(int *data, uint64_t *signal, int writer, Order order, Tell tell, Use use) {
    if (nvshmem_my_pe() == 0) {
        if (threadIdx.x == writer) data[DATA] = 7;
        __syncthreads();
        if (threadIdx.x != 0) return;
        order();
        tell();
    } else if (threadIdx.x == 0) {
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
        data[SEEN] = use();
    }
}

#define PULL(name, order, tell, use) extern "C" __global__ void name(int *data, uint64_t *signal, int writer) { pull(data, signal, writer, order, tell, use); }
PULL(signal_behind_nothing, NOTHING, BY_SIGNAL, BY_G)
PULL(signal_behind_gpu_fence, GPU_FENCE, BY_SIGNAL, BY_G)
PULL(signal_behind_fence, FENCE, BY_SIGNAL, BY_G)
PULL(signal_behind_system_fence, SYSTEM_FENCE, BY_SIGNAL, BY_G)
PULL(signal_behind_quiet, QUIET, BY_SIGNAL, BY_G)
PULL(atomic_behind_nothing, NOTHING, BY_ATOMIC, BY_G)
PULL(atomic_behind_system_fence, SYSTEM_FENCE, BY_ATOMIC, BY_G)
PULL(put_signal_behind_nothing, NOTHING, BY_PUT_SIGNAL, BY_G)
PULL(put_signal_behind_system_fence, SYSTEM_FENCE, BY_PUT_SIGNAL, BY_G)
PULL(get_behind_nothing, NOTHING, BY_SIGNAL, BY_GET)
PULL(get_behind_system_fence, SYSTEM_FENCE, BY_SIGNAL, BY_GET)
PULL(load_behind_nothing, NOTHING, BY_SIGNAL, BY_LOAD)
PULL(load_behind_system_fence, SYSTEM_FENCE, BY_SIGNAL, BY_LOAD)
PULL(p_behind_nothing, NOTHING, BY_SIGNAL, BY_P)
PULL(p_behind_system_fence, SYSTEM_FENCE, BY_SIGNAL, BY_P)

// PE 0 reads what PE 1 writes to when it is told: what was read needs no fence.
extern "C" __global__ void read_behind_nothing(int *data, uint64_t *signal, int) {
    if (threadIdx.x != 0) return;
    if (nvshmem_my_pe() == 0) {
        data[SEEN] = data[DATA];
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
        nvshmem_int_p(data + DATA, 7, 0);
    }
}

// PE 0 signals to itself behind a fence, which is about its own memory. PE 1 fetches the signal until it is there.
template <typename Order> __device__ void to_itself(int *data, uint64_t *signal, Order order) {
    if (threadIdx.x != 0) return;
    if (nvshmem_my_pe() == 0) {
        data[DATA] = 7;
        order();
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 0);
    } else {
        while (nvshmem_uint64_atomic_fetch(signal, 0) != 1) {}
        data[SEEN] = nvshmem_int_g(data + DATA, 0);
    }
}
extern "C" __global__ void to_itself_behind_nothing(int *data, uint64_t *signal, int) { to_itself(data, signal, NOTHING); }
extern "C" __global__ void to_itself_behind_fence(int *data, uint64_t *signal, int) { to_itself(data, signal, FENCE); }

// A kernel signals to the host of its PE.
template <typename Order> __device__ void to_host(int *data, uint64_t *signal, int writer, Order order) {
    if (threadIdx.x == writer) data[DATA] = 7;
    __syncthreads();
    if (threadIdx.x != 0) return;
    order();
    nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, nvshmem_my_pe());
}
extern "C" __global__ void host_behind_nothing(int *data, uint64_t *signal, int writer) { to_host(data, signal, writer, NOTHING); }
extern "C" __global__ void host_behind_fence(int *data, uint64_t *signal, int writer) { to_host(data, signal, writer, FENCE); }
extern "C" __global__ void host_behind_system_fence(int *data, uint64_t *signal, int writer) { to_host(data, signal, writer, SYSTEM_FENCE); }

// Each PE writes and meets the other one: a sync completes what was stored.
extern "C" __global__ void behind_sync(int *data, uint64_t *, int writer) {
    if (threadIdx.x == writer) data[DATA] = 7;
    nvshmemx_sync_all_block();
    if (threadIdx.x == 0) data[SEEN] = nvshmem_int_g(data + DATA, 1 - nvshmem_my_pe());
}

// What a call has got is written, too.
template <typename Order> __device__ void got(int *data, uint64_t *signal, Order order) {
    if (threadIdx.x != 0) return;
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_get(data + DATA, data + OTHER, 1, 1);
        order();
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
        data[SEEN] = nvshmem_int_g(data + DATA, 0);
    }
}
extern "C" __global__ void got_behind_nothing(int *data, uint64_t *signal, int) { got(data, signal, NOTHING); }
extern "C" __global__ void got_behind_system_fence(int *data, uint64_t *signal, int) { got(data, signal, SYSTEM_FENCE); }

// The same of strong stores and of atomics.
template <typename Store, typename Order> __device__ void strongly(int *data, uint64_t *signal, Store store, Order order) {
    if (threadIdx.x != 0) return;
    if (nvshmem_my_pe() == 0) {
        store();
        order();
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
        data[SEEN] = nvshmem_int_g(data + DATA, 0);
    }
}
#define STRONGLY(name, store, order) extern "C" __global__ void name(int *data, uint64_t *signal, int) { strongly(data, signal, [=] { store; }, order); }
STRONGLY(volatile_behind_nothing, *(volatile int *)(data + DATA) = 7, NOTHING)
STRONGLY(volatile_behind_system_fence, *(volatile int *)(data + DATA) = 7, SYSTEM_FENCE)
STRONGLY(atomic_store_behind_nothing, atomicAdd_system(data + DATA, 7), NOTHING)
STRONGLY(atomic_store_behind_system_fence, atomicAdd_system(data + DATA, 7), SYSTEM_FENCE)

// PE 0 puts what it has stored, and a signal behind it. PE 1 then writes over it, or reads it, where it came from.
template <typename Use> __device__ void sent(int *data, uint64_t *signal, int writer, Use use) {
    if (nvshmem_my_pe() == 0) {
        if (threadIdx.x == writer) data[DATA] = 7;
        __syncthreads();
        if (threadIdx.x != 0) return;
        nvshmem_int_put_signal_nbi(data + OTHER, data + DATA, 1, signal, 1, NVSHMEM_SIGNAL_SET, 1);
        if (data[DATA] < 0) data[SEEN] = data[DATA];
    } else if (threadIdx.x == 0) {
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
        data[SEEN] = use();
    }
}
extern "C" __global__ void sent_and_read(int *data, uint64_t *signal, int writer) { sent(data, signal, writer, BY_G); }
// What it came from is answered in place.
extern "C" __global__ void sent_and_answered(int *data, uint64_t *signal, int writer) {
    if (nvshmem_my_pe() == 0) {
        if (threadIdx.x == writer) data[DATA] = 6;
        __syncthreads();
        if (threadIdx.x != 0) return;
        nvshmem_int_put_signal_nbi(data + OTHER, data + DATA, 1, signal, 1, NVSHMEM_SIGNAL_SET, 1);
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 2);
        data[SEEN] = data[DATA];
    } else if (threadIdx.x == 0) {
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
        data[SEEN] = data[OTHER] + 1;
        nvshmem_int_put_signal(data + DATA, data + SEEN, 1, signal, 2, NVSHMEM_SIGNAL_SET, 0);
    }
}

// Each PE writes, tells the other one and waits for it. Then the threads meet, and another one than that which has waited fetches.
template <typename Order> __device__ void exchange(int *data, uint64_t *signal, Order order) {
    const int other = 1 - nvshmem_my_pe();
    if (threadIdx.x == 1) data[OTHER] = 7;
    __syncthreads();
    if (threadIdx.x == 0) {
        order();
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, other);
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
    }
    __syncthreads();
    if (threadIdx.x == 1) data[SEEN] = nvshmem_int_g(data + OTHER, other);
    __syncthreads();
}
extern "C" __global__ void exchange_behind_nothing(int *data, uint64_t *signal, int) { exchange(data, signal, [] {}); }
extern "C" __global__ void exchange_behind_system_fence(int *data, uint64_t *signal, int) { exchange(data, signal, [] { __threadfence_system(); }); }

// Thread 1 stores, and before the barrier a thread fences: thread 1 in front of its store or behind it, or only thread 0. Behind the barrier, thread 0 tells PE 1.
enum Fences { IN_FRONT, BEHIND, OTHER_ONLY };
template <Fences fences, typename Tell> __device__ void before_the_barrier(int *data, uint64_t *signal, Tell tell) {
    if (nvshmem_my_pe() == 0) {
        if (threadIdx.x == 0 || fences == IN_FRONT) __threadfence_system();
        if (threadIdx.x == 1) data[DATA] = 7;
        if (threadIdx.x == 1 && fences == BEHIND) __threadfence_system();
        __syncthreads();
        if (threadIdx.x == 0) tell();
    } else if (threadIdx.x == 0) {
        while (*(volatile uint64_t *)signal != 1) {}
        __threadfence_system();
        data[SEEN] = *(int *)nvshmem_ptr(data + DATA, 0);
    }
}
#define BEFORE_THE_BARRIER(name, fences, tell) extern "C" __global__ void name(int *data, uint64_t *signal, int) { before_the_barrier<fences>(data, signal, tell); }
#define BY_STORE [=] { *(volatile uint64_t *)nvshmem_ptr(signal, 1) = 1; }
BEFORE_THE_BARRIER(store_behind_fences_in_front, IN_FRONT, BY_STORE)
BEFORE_THE_BARRIER(store_behind_fences_behind, BEHIND, BY_STORE)
BEFORE_THE_BARRIER(store_behind_other_fence, OTHER_ONLY, BY_STORE)
BEFORE_THE_BARRIER(signal_behind_fences_in_front, IN_FRONT, BY_SIGNAL)
BEFORE_THE_BARRIER(signal_behind_fences_behind, BEHIND, BY_SIGNAL)
BEFORE_THE_BARRIER(signal_behind_other_fence, OTHER_ONLY, BY_SIGNAL)

// The same, where another block of the PE is told.
template <Fences fences> __device__ void to_another_block(int *data, uint64_t *signal) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0 || fences == IN_FRONT) __threadfence();
        if (threadIdx.x == 1) data[DATA] = 7;
        if (threadIdx.x == 1 && fences == BEHIND) __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) *(volatile uint64_t *)signal = 1;
    } else if (threadIdx.x == 0) {
        while (*(volatile uint64_t *)signal != 1) {}
        __threadfence();
        data[SEEN] = data[DATA];
    }
}
extern "C" __global__ void block_behind_fences_in_front(int *data, uint64_t *signal, int) { to_another_block<IN_FRONT>(data, signal); }
extern "C" __global__ void block_behind_fences_behind(int *data, uint64_t *signal, int) { to_another_block<BEHIND>(data, signal); }
extern "C" __global__ void block_behind_other_fence(int *data, uint64_t *signal, int) { to_another_block<OTHER_ONLY>(data, signal); }
