// Jacobi's iteration for Laplace's equation. Each PE has a stripe of rows between two halo rows; after each sweep the block puts its edge
// rows into the neighbours' halos, with a signal that counts iterations. The whole iteration is one launch of one block.
#include <nvshmem.h>
#include <nvshmemx.h>

// `grids` holds two grids of (rows + 2) x columns; the first is current at the beginning, and both have their halos. `signals` are two
// words, both 0: how far the neighbour above has come, and the one below.
extern "C" __global__ void jacobi(float *grids, int rows, int columns, int iterations, uint64_t *signals) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    const int size = (rows + 2) * columns;
    for (int iteration = 1; iteration <= iterations; iteration++) {
        const float *now = grids + (iteration - 1) % 2 * size;
        float *next = grids + iteration % 2 * size;
        for (int i = threadIdx.x; i < rows * columns; i += blockDim.x) {
            const int x = i % columns, at = columns + i;
            const bool edge = x == 0 || x == columns - 1;
            next[at] = edge ? now[at] : 0.25f * (now[at - 1] + now[at + 1] + now[at - columns] + now[at + columns]);
        }
        // Signals are not ordered among themselves: without a fence, this iteration's could arrive before the rows of the last one.
        if (threadIdx.x == 0) nvshmem_fence();
        __syncthreads();
        // My first row is the lower halo of the PE above; my last row the upper halo of the PE below.
        if (me > 0) {
            nvshmemx_float_put_signal_block(next + (rows + 1) * columns, next + columns, columns, signals + 1, iteration,
                                            NVSHMEM_SIGNAL_SET, me - 1);
        }
        if (me < n - 1) {
            nvshmemx_float_put_signal_block(next, next + rows * columns, columns, signals, iteration, NVSHMEM_SIGNAL_SET, me + 1);
        }
#ifdef BROKEN
        const int wanted = iteration - 1; // the neighbour's rows of the iteration before: they are there already
#else
        const int wanted = iteration;
#endif
        if (threadIdx.x == 0 && me > 0) nvshmem_signal_wait_until(signals, NVSHMEM_CMP_GE, wanted);
        if (threadIdx.x == 0 && me < n - 1) nvshmem_signal_wait_until(signals + 1, NVSHMEM_CMP_GE, wanted);
        __syncthreads();
    }
}
