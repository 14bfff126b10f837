// Counts values: first in shared memory, then one atomic a bin to the PE that owns it.
#include <nvshmem.h>

extern "C" __global__ void histogram(unsigned *bins, const unsigned *values, int elements, int bins_a_pe) {
    extern __shared__ unsigned counts[];
    const int all = bins_a_pe * nvshmem_n_pes();
    for (int bin = threadIdx.x; bin < all; bin += blockDim.x) counts[bin] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += gridDim.x * blockDim.x) {
        atomicAdd(&counts[values[i] % all], 1u);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < all; bin += blockDim.x) {
        if (counts[bin]) nvshmem_uint_atomic_add(bins + bin % bins_a_pe, counts[bin], bin / bins_a_pe);
    }
}

// Every kind of atomic on global memory.
extern "C" __global__ void atomics(unsigned *u, int *s, unsigned long long *l, float *f, double *d) {
    const unsigned i = threadIdx.x;
    atomicAdd(u + 0, i);
    atomicSub(u + 1, i);
    atomicInc(u + 2, 5);
    atomicDec(u + 3, 5);
    atomicMin(u + 4, i);
    atomicMax(u + 5, i);
    atomicAnd(u + 6, ~(1u << i % 32));
    atomicOr(u + 7, 1u << i % 32);
    atomicXor(u + 8, i);
    u[16 + i] = atomicExch(u + 9, i);
    atomicCAS(u + 10, 0, i + 1);
    atomicMin(s + 0, -int(i));
    atomicMax(s + 1, -int(i));
    atomicAdd(l + 0, 1ull << 33);
    atomicCAS(l + 1, 7ull, 8ull);
    atomicMax(l + 2, (unsigned long long)i << 40);
    atomicAdd(f, 0.5f);
    atomicAdd(d, 0.25);
    atomicAdd_system(u + 11, 1u);
    atomicAdd_block(u + 12, 1u);
}
