// Each block fills its part of an array, and all of its threads put that part to the next PE together. Then the part is used again.
#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void set_and_shift(float *received, float *part, int elements) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    const int next = (me + 1) % n, first = blockIdx.x * blockDim.x;
    const int mine = min((int)blockDim.x, elements - first);
    const int i = first + threadIdx.x;

    if (i < elements) part[i] = 1000.0f * me + i;
    __syncthreads(); // any thread may copy what another one has written
#ifdef BROKEN
    // The source may be read until a quiet, and is overwritten before one.
    nvshmemx_float_put_nbi_block(received + first, part + first, mine, next);
#else
    nvshmemx_float_put_block(received + first, part + first, mine, next);
#endif
    if (i < elements) part[i] = -1.0f;
    __syncthreads();
    if (threadIdx.x == 0) nvshmem_quiet();
}
