// Polling: with a volatile flag, with acquire and release in inline assembly, with a lock, with a time-out.
#include <nvshmem.h>

__device__ int load_acquire(const int *at) {
    int value;
    asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}
__device__ void store_release(int *at, int value) {
    asm volatile("st.release.sys.global.s32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

extern "C" __global__ void push(int *data, int *flag, int elements, int peer) {
    int *there = (int *)nvshmem_ptr(data, peer), *raised = (int *)nvshmem_ptr(flag, peer);
    for (int i = threadIdx.x; i < elements; i += blockDim.x) there[i] = i + 1;
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) store_release(raised, 1);
}

extern "C" __global__ void poll_acquire(int *out, const int *data, const int *flag, int elements) {
    if (threadIdx.x == 0)
        while (load_acquire(flag) == 0) {}
    __syncthreads();
    for (int i = threadIdx.x; i < elements; i += blockDim.x) out[i] = data[i];
}

extern "C" __global__ void poll_volatile(int *out, const int *data, volatile int *flag, int elements) {
    while (*flag == 0) {}
    __threadfence_system();
    for (int i = threadIdx.x; i < elements; i += blockDim.x) out[i] = data[i];
}

extern "C" __global__ void poll_with_clock(int *out, const int *flag) {
    long long start = clock64();
    while (load_acquire(flag) == 0) {
        if (clock64() - start > 1000000) {
            printf("time-out of block %d, thread %d\n", blockIdx.x, threadIdx.x);
            __trap();
        }
        __nanosleep(20);
    }
    *out = 1;
}

// A lock in shared memory, taken by one thread of each warp after the other.
extern "C" __global__ void lock(int *count) {
    __shared__ int taken, inside;
    if (threadIdx.x == 0) taken = inside = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(&taken, 0, 1) != 0) {}
        __threadfence_block();
        inside += 1;
        __threadfence_block();
        atomicExch(&taken, 0);
    }
    __syncthreads();
    if (threadIdx.x == 0) *count = inside;
}

// Every form of order and scope that inline assembly of communication libraries uses.
extern "C" __global__ void forms(unsigned *word, unsigned long long *wide) {
    unsigned a, b, c;
    asm volatile("atom.add.release.gpu.global.u32 %0, [%1], 1;" : "=r"(a) : "l"(word) : "memory");
    asm volatile("atom.acq_rel.sys.global.cas.b32 %0, [%1], 1, 2;" : "=r"(b) : "l"(word) : "memory");
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(c) : "l"(word) : "memory");
    asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(wide), "l"(5ull) : "memory");
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(word + 1), "r"(a + b + c) : "memory");
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    asm volatile("fence.sc.gpu;" ::: "memory");
    asm volatile("membar.cta;" ::: "memory");
    int4 four;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.s32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w) : "l"(word + 4));
    asm volatile("st.global.L1::no_allocate.v4.s32 [%0], {%1, %2, %3, %4};" ::"l"(word + 8), "r"(four.w), "r"(four.z),
                 "r"(four.y), "r"(four.x));
}

// Named barriers: the first warp produces, the second one consumes.
extern "C" __global__ void pipeline(int *out, int rounds) {
    __shared__ int slot[32];
    const int lane = threadIdx.x % 32;
    for (int round = 0; round < rounds; round++) {
        if (threadIdx.x < 32) {
            slot[lane] = round * 100 + lane;
            asm volatile("bar.arrive 1, 64;" ::: "memory");
            asm volatile("bar.sync 2, 64;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            out[round * 32 + lane] = slot[lane];
            asm volatile("bar.arrive 2, 64;" ::: "memory");
        }
    }
    int odd = __syncthreads_count(threadIdx.x & 1);
    int any = __syncthreads_or(threadIdx.x == 5), all = __syncthreads_and(threadIdx.x < 64);
    if (threadIdx.x == 0) out[rounds * 32] = odd * 4 + any * 2 + all;
}
