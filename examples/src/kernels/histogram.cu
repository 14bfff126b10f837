// A histogram whose bins are spread over the PEs: bin b lies on PE b % n. Every thread counts its values by atomic operations.
#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void histogram(unsigned int *bins, const int *values, int count) {
    const int n = nvshmem_n_pes();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned int *bin = bins + values[i] / n;
        const int pe = values[i] % n;
#ifdef BROKEN
        nvshmem_uint_p(bin, nvshmem_uint_g(bin, pe) + 1, pe); // another thread can count between the two
#else
        nvshmem_uint_atomic_inc(bin, pe);
#endif
    }
    __syncthreads();
    if (threadIdx.x == 0) nvshmem_quiet();
}
