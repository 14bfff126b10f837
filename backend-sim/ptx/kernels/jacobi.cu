// Jacobi's iteration for Laplace's equation. The PEs own stripes of rows; a kernel writes its edge rows into the neighbours' halos.
#include <nvshmem.h>
#include <nvshmemx.h>

struct Grid {
    float *now, *next; // (rows + 2) x columns, the halo rows included
    int rows, columns;
};

template <int BLOCK_X, int BLOCK_Y>
__device__ void sweep(const Grid grid, float *norm, int top, int bottom) {
    const int x = blockIdx.x * BLOCK_X + threadIdx.x + 1, y = blockIdx.y * BLOCK_Y + threadIdx.y + 1;
    float residue = 0.0f;
    if (x < grid.columns - 1 && y <= grid.rows) {
        const float *at = grid.now + y * grid.columns + x;
        const float value = 0.25f * (at[-1] + at[1] + at[-grid.columns] + at[grid.columns]);
        grid.next[y * grid.columns + x] = value;
        residue = (value - *at) * (value - *at);
        if (y == 1) nvshmem_float_p(grid.next + (grid.rows + 1) * grid.columns + x, value, top);
        if (y == grid.rows) nvshmem_float_p(grid.next + x, value, bottom);
    }
    __shared__ float sums[BLOCK_X * BLOCK_Y / 32];
    const int thread = threadIdx.y * BLOCK_X + threadIdx.x;
    for (int distance = 16; distance > 0; distance /= 2) residue += __shfl_xor_sync(0xffffffff, residue, distance);
    if (thread % 32 == 0) sums[thread / 32] = residue;
    __syncthreads();
    if (thread == 0) {
        float sum = 0.0f;
        for (float part : sums) sum += part;
        atomicAdd(norm, sum);
    }
}

extern "C" __global__ void __launch_bounds__(64) jacobi(Grid grid, float *norm, int top, int bottom) {
    sweep<32, 2>(grid, norm, top, bottom);
}

// The halo exchange as calls of the block: rows go to the neighbours with a signal each.
extern "C" __global__ void exchange(Grid grid, uint64_t *signals, int top, int bottom, uint64_t iteration) {
    const size_t row = grid.columns;
    nvshmemx_float_put_signal_nbi_block(grid.next + (grid.rows + 1) * row, grid.next + row, row, signals + 1, iteration,
                                        NVSHMEM_SIGNAL_SET, top);
    nvshmemx_float_put_signal_nbi_block(grid.next, grid.next + grid.rows * row, row, signals, iteration, NVSHMEM_SIGNAL_SET,
                                        bottom);
    if (threadIdx.x < 2) nvshmem_uint64_wait_until(signals + threadIdx.x, NVSHMEM_CMP_GE, iteration);
}
