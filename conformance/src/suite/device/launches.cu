// Kernels as work of streams: arguments of every kind, variables of the module, kernels and operations in a row.
#include "kernel.h"

struct Work {
    short count;
    char next;
    double factor;
};
extern "C" __global__ void structure(int *in, int *data, uint64_t *words, int *out, Work work) {
    nvshmem_int_put(data, in, work.count, (ME + work.next) % N);
    out[0] = (int)(work.factor * work.count);
}
extern "C" __global__ void numbers(int *in, int *data, uint64_t *words, int *out, signed char a, unsigned short b, int c, uint64_t d,
                                   float e, double f, bool g, int *none) {
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = (int)(d >> 32);
    out[4] = (int)(e * 4);
    out[5] = (int)(f * 8);
    out[6] = g;
    out[7] = none == nullptr;
}

// A module's variables live from one launch to the next.
__device__ int launches = 3;
__constant__ int table[4] = {10, 20, 30, 40};
KERNEL(variables) {
    out[launches] = table[launches - 3];
    launches++;
}

// The dimensions of the launch.
KERNEL(dimensions) {
    const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    if (thread == 7) out[block] = 1 + block;
    if (block == 3 && thread % 2 == 0) out[4 + thread / 2] = 10 + thread / 2;
}

// Parts of cases with several kernels or operations of a stream.
KERNEL(put_one) { nvshmem_int_p(data, in[1], NEXT); }
KERNEL(put_nbi) { nvshmem_int_put_nbi(data, in + 1, 1, NEXT); }
KERNEL(fence_and_signal) {
    nvshmem_fence();
    nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_SET, NEXT);
}
KERNEL(signal) { nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_SET, NEXT); }
KERNEL(wait_and_read) {
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    out[0] = data[0];
}
KERNEL(read) { out[0] = data[0]; }
KERNEL(change) { in[1] += 1000; }
