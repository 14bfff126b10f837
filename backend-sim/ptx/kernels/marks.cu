// Races that a kernel means are marked at the accesses, and nothing else is. Two PEs run each kernel with two threads of one block.

#include <nvshmem.h>
#include <nvshmemx.h>
#include <onesided.h>

__device__ __forceinline__ int *at_peer(int *data) { return (int *)nvshmem_ptr(data, 1 - nvshmem_my_pe()); }

__device__ __forceinline__ int load(const int *from) {
    int value;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

// Stores to the peer, and looks at what the peer has stored.
extern "C" __global__ void looks(int *data, uint64_t *signal, int *seen) {
    if (threadIdx.x > 0) return;
    int *there = at_peer(data);
    {
        ONESIDED_INTENDED_RACE("a hint");
        there[0] = 1;
    }
    ONESIDED_INTENDED_RACE("a look");
    *seen = data[0];
}

// A mark ends with its braces, however they are left.
extern "C" __global__ void leaves(int *data, uint64_t *signal, int *seen) {
    if (threadIdx.x > 0) return;
    int *there = at_peer(data);
    for (int i = 0; i < 3; i++) {
        ONESIDED_INTENDED_RACE("a hint");
        there[0] = 1;
        if (load(data) == 1) break;
        if (i == 1) continue;
        *seen = i;
    }
    there[1] = 1;
    *seen += data[1];
}

__device__ __noinline__ void store(int *to, int value) { *to = value; }

// Under the outer mark, behind an inner one, in a function, and by a call.
extern "C" __global__ void nested(int *data, uint64_t *signal, int *seen) {
    if (threadIdx.x > 0) return;
    int *there = at_peer(data);
    ONESIDED_INTENDED_RACE("outside");
    {
        ONESIDED_INTENDED_RACE("inside");
        there[0] = 1;
    }
    store(&there[1], 1);
    nvshmem_int_p(&data[2], 1, 1 - nvshmem_my_pe());
    *seen = load(data) + load(data + 1) + load(data + 2);
}

// The payload is its own flag: it is not zero, and nothing else is stored with it.
extern "C" __global__ void payload(int *data, uint64_t *signal, int *seen) {
    int *there = at_peer(data);
    int value;
    {
        ONESIDED_INTENDED_RACE("the payload is its own flag");
        there[threadIdx.x] = threadIdx.x + 1;
    }
    do {
        ONESIDED_INTENDED_RACE("the payload is its own flag");
        value = load(data + threadIdx.x);
    } while (value == 0);
    atomicAdd(seen, value);
}

// The same, and a mistake: a word beside the payload has not come with it.
extern "C" __global__ void payload_and_more(int *data, uint64_t *signal, int *seen) {
    int *there = at_peer(data);
    int value;
    there[2 + threadIdx.x] = 1;
    {
        ONESIDED_INTENDED_RACE("the payload is its own flag");
        there[threadIdx.x] = threadIdx.x + 1;
    }
    do {
        ONESIDED_INTENDED_RACE("the payload is its own flag");
        value = load(data + threadIdx.x);
    } while (value == 0);
    atomicAdd(seen, value + data[2 + threadIdx.x]);
}

// One thread of the warp is under a mark, and the other is not.
extern "C" __global__ void one_of_two(int *data, uint64_t *signal, int *seen) {
    int *there = at_peer(data);
    if (threadIdx.x == 0) {
        ONESIDED_INTENDED_RACE("thread 0 alone");
        there[0] = 1;
    }
    __syncwarp();
    if (threadIdx.x == 0) {
        ONESIDED_INTENDED_RACE("thread 0 alone");
        seen[0] = load(data);
    }
    __syncwarp();
    there[1 + threadIdx.x] = 1;
}

// Two blocks: one stores, the other one fences and signals. The store and the look at it are marked.
extern "C" __global__ void beside(int *data, uint64_t *signal, int *seen) {
    if (threadIdx.x > 0) return;
    if (blockIdx.x == 0) {
        ONESIDED_INTENDED_RACE("a hint");
        at_peer(data)[0] = 1;
        return;
    }
    nvshmem_fence();
    nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1 - nvshmem_my_pe());
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
    ONESIDED_INTENDED_RACE("a look");
    *seen = load(data);
}

// A bulk copy goes on beside its thread, and has its mark. Whoever looks has none.
extern "C" __global__ void bulk(int *data, uint64_t *signal, int *seen) {
    __shared__ alignas(16) int tile[4];
    if (threadIdx.x > 0) return;
    int *there = at_peer(data);
    for (int i = 0; i < 4; i++) tile[i] = 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    {
        ONESIDED_INTENDED_RACE("a copy");
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" ::"l"(there), "r"((unsigned)__cvta_generic_to_shared(tile)) : "memory");
    }
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    *seen = data[0];
}

// The same, with a fence of CUDA behind an access of its own block.
extern "C" __global__ void beside_an_access(int *data, uint64_t *signal, int *seen) {
    if (threadIdx.x > 0) return;
    if (blockIdx.x == 0) {
        ONESIDED_INTENDED_RACE("a hint");
        at_peer(data)[0] = 1;
        return;
    }
    seen[0] = *(volatile int *)(data + 1);
    __threadfence_system();
    *(volatile unsigned long long *)nvshmem_ptr(signal, 1 - nvshmem_my_pe()) = 1;
    while (*(volatile unsigned long long *)signal == 0) {}
    ONESIDED_INTENDED_RACE("a look");
    *seen = load(data);
}

// One thread stores twice to a word, and to another one; the other waits for the first value, and looks at both.
extern "C" __global__ void values(int *data, uint64_t *signal, int *seen) {
    ONESIDED_INTENDED_RACE("any value may be seen");
    int *there = at_peer(data);
    if (threadIdx.x == 0) {
        store(&there[0], 1);
        store(&there[0], 2);
        store(&there[1], 1);
        return;
    }
    int first;
    do {
        first = load(data);
    } while (first == 0);
    *seen = 100 * first + 10 * load(data + 1) + load(data);
}

// Past the cache, as DeepEP reads: the load may be answered by what was there before, wait or not.
extern "C" __global__ void read_only(int *data, uint64_t *signal, int *seen) {
    if (threadIdx.x > 0) return;
    nvshmem_int_p(data, 1, 1 - nvshmem_my_pe());
    nvshmem_fence();
    nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1 - nvshmem_my_pe());
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
    int value;
    {
        ONESIDED_INTENDED_RACE("not cached on this GPU");
        asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(value) : "l"(data) : "memory");
    }
    *seen = value;
}
