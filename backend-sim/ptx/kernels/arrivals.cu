// Who comes last, or first: threads count, and each asks of the old value only whether it is some number.
#include <nvshmem.h>
#include <nvshmemx.h>

enum { COUNT, OTHER, DATA, SEEN = 40 }; // the words of data

// A thread that got this answer adds up what all have written.
__device__ void sum(int *data, int all) {
    int sum = 0;
    for (int i = 0; i < all; i++) sum += data[DATA + i];
    data[SEEN] = sum;
}

// How a thread counts, and whether it is the one.
#define LAST_BY_ADD [=] { return atomicAdd(data + COUNT, 1) == all - 1; }
#define LAST_BY_PLUS [=] { return atomicAdd(data + COUNT, 1) + 1 == all; }
#define LAST_BY_INC [=] { return atomicInc((unsigned *)data + COUNT, all - 1) == all - 1; }
#define LAST_BY_SUB [=] { return atomicSub(data + COUNT, 1) == 1 - all; }
#define LAST_OF_TWO [=] { return atomicAdd(data + COUNT, 1) == 1; }
#define FIRST [=] { return atomicAdd(data + COUNT, 1) == 0; }
#define LAST_OR_FIRST [=] { int old = atomicAdd(data + COUNT, 1); if (old == 0) data[OTHER] = blockIdx.x + 1; return old == all - 1; }
#define LAST_BY_REF [=] { return fetch_add(data + COUNT, 1) == all - 1; }

// As cuda::atomic_ref has them.
__device__ int fetch_add(int *word, int by) {
    int old;
    asm volatile("atom.add.acq_rel.gpu.s32 %0,[%1],%2;" : "=r"(old) : "l"(word), "r"(by) : "memory");
    return old;
}
__device__ int load_acquire(int *word) {
    int value;
    asm volatile("ld.acquire.gpu.s32 %0,[%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

// Blocks of one thread write, count, and the last one reads what all have written.
template <typename Order, typename Counts> __device__ void last_reads(int *data, int all, Order order, Counts counts) {
    data[DATA + blockIdx.x] = 7;
    order();
    if (counts()) {
        order();
        sum(data, all);
    }
}

#define FENCED [=] { __threadfence(); }
#define UNFENCED [=] {}
#define LAST_READS(name, order, counts) extern "C" __global__ void name(int *data, int all) { last_reads(data, all, order, counts); }
LAST_READS(last_by_add, FENCED, LAST_BY_ADD)
LAST_READS(last_by_plus, FENCED, LAST_BY_PLUS)
LAST_READS(last_by_inc, FENCED, LAST_BY_INC)
LAST_READS(last_by_sub, FENCED, LAST_BY_SUB)
LAST_READS(last_by_ref, UNFENCED, LAST_BY_REF)
LAST_READS(last_without_fence, UNFENCED, LAST_BY_ADD)
LAST_READS(too_early, FENCED, LAST_OF_TWO)
LAST_READS(last_or_first, FENCED, LAST_OR_FIRST)

// Whoever is not the last reads what another block has written before it counted.
extern "C" __global__ void others_read(int *data, int all) {
    if (blockIdx.x == 0) data[DATA] = 7;
    __threadfence();
    bool last = (LAST_BY_ADD)();
    __threadfence();
    if (!last && blockIdx.x == 1) data[SEEN] = data[DATA];
}

// Of two blocks, the one that is not the first knows that the other one was.
extern "C" __global__ void second_reads(int *data, int all) {
    data[DATA + blockIdx.x] = 7;
    __threadfence();
    bool first = (FIRST)();
    __threadfence();
    if (!first) sum(data, all);
}

// Only the last one knows that all have come; it says so, and begins anew. Then everybody counts again.
extern "C" __global__ void two_phases(int *data, int all) {
    for (int phase = 1; phase <= 2; phase++) {
        data[DATA + blockIdx.x] = phase;
        __threadfence();
        if ((LAST_BY_ADD)()) {
            __threadfence();
            sum(data, all);
            atomicExch(data + COUNT, 0);
            __threadfence();
            atomicExch(data + OTHER, phase);
        }
        while (load_acquire(data + OTHER) != phase) {}
    }
}

// One counts in another way.
extern "C" __global__ void by_two(int *data, int all) {
    int by = blockIdx.x == 0 ? 2 : 1;
    if (atomicAdd(data + COUNT, by) == all - 1) data[SEEN] = blockIdx.x + 1;
}

// One looks at the count as well.
extern "C" __global__ void one_looks(int *data, int all) {
    if (blockIdx.x == 0) {
        data[SEEN] = load_acquire(data + COUNT);
    } else if (atomicAdd(data + COUNT, 1) == all - 2) {
        data[OTHER] = blockIdx.x;
    }
}

// As a pipeline of libcu++ counts who has left it.
__device__ int fetch_add_in_block(int *word, int by) {
    int old;
    asm volatile("atom.add.acq_rel.cta.s32 %0,[%1],%2;" : "=r"(old) : "l"(word), "r"(by) : "memory");
    return old;
}

// Threads of a block write to its memory or to that of the GPU, count in the block's, and the last one reads what all have written.
template <bool IN_BLOCK, typename Order, typename Counts> __device__ void last_thread_reads(int *data, int all, int begin, Order order, Counts counts) {
    __shared__ int count, values[8];
    if (threadIdx.x == 0) count = begin;
    __syncthreads();
    int *written = IN_BLOCK ? values : data + DATA;
    written[threadIdx.x] = 7;
    order();
    if (counts(&count)) {
        order();
        int sum = 0;
        for (int i = 0; i < all; i++) sum += written[i];
        data[SEEN] = sum;
    }
}

#define FENCED_IN_BLOCK [=] { __threadfence_block(); }
#define LAST_THREAD_BY_ADD [=](int *count) { return atomicAdd(count, 1) == all - 1; }
#define LAST_THREAD_BY_INC [=](int *count) { return atomicInc((unsigned *)count, all - 1) == all - 1; }
#define LAST_THREAD_LEAVES [=](int *count) { return fetch_add_in_block(count, -1) == 1; }
#define LAST_OF_TWO_THREADS [=](int *count) { return atomicAdd(count, 1) == 1; }
#define LAST_OR_FIRST_THREAD [=](int *count) { int old = atomicAdd(count, 1); if (old == 0) data[OTHER] = threadIdx.x + 1; return old == all - 1; }
#define LAST_THREAD(name, begin, order, counts) \
    extern "C" __global__ void threads_##name(int *data, int all) { last_thread_reads<true>(data, all, begin, order, counts); } \
    extern "C" __global__ void threads_##name##_in_global(int *data, int all) { last_thread_reads<false>(data, all, begin, order, counts); }
LAST_THREAD(by_add, 0, FENCED_IN_BLOCK, LAST_THREAD_BY_ADD)
LAST_THREAD(by_inc, 0, FENCED_IN_BLOCK, LAST_THREAD_BY_INC)
LAST_THREAD(leave, all, UNFENCED, LAST_THREAD_LEAVES)
LAST_THREAD(without_fence, 0, UNFENCED, LAST_THREAD_BY_ADD)
LAST_THREAD(too_early, 0, FENCED_IN_BLOCK, LAST_OF_TWO_THREADS)
LAST_THREAD(last_or_first, 0, FENCED_IN_BLOCK, LAST_OR_FIRST_THREAD)

// Whoever is not the last reads what another thread has written before it counted.
template <bool IN_BLOCK> __device__ void other_threads_read(int *data, int all) {
    __shared__ int count, values[8];
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    int *written = IN_BLOCK ? values : data + DATA;
    written[threadIdx.x] = 7;
    __threadfence_block();
    bool last = atomicAdd(&count, 1) == all - 1;
    __threadfence_block();
    if (!last && threadIdx.x == 1) data[SEEN] = written[0];
}

extern "C" __global__ void threads_others_read(int *data, int all) { other_threads_read<true>(data, all); }
extern "C" __global__ void threads_others_read_in_global(int *data, int all) { other_threads_read<false>(data, all); }

// Of two threads, the one that is not the first knows that the other one was. Then they begin anew.
extern "C" __global__ void threads_second_reads(int *data, int all) {
    __shared__ int count, values[2];
    if (threadIdx.x == 0) count = 0;
    for (int round = 0; round < 2; round++) {
        __syncthreads();
        values[threadIdx.x] = 7;
        __threadfence_block();
        bool first = atomicAdd(&count, 1) == 2 * round;
        __threadfence_block();
        if (!first) data[SEEN] = values[0] + values[1];
    }
}

// One thread sets the count to what it was, and tells by that what it has done: the next one that asks in vain knows of it.
extern "C" __global__ void threads_one_stores(int *data, int all) {
    __shared__ int count, values[8];
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    values[threadIdx.x] = 7;
    if (threadIdx.x == 0) {
        asm volatile("st.release.cta.s32 [%0],%1;" ::"l"(&count), "r"(5) : "memory");
    } else if (fetch_add_in_block(&count, 1) != 0) {
        data[SEEN] = values[0];
    }
}
