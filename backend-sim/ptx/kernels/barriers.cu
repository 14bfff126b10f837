// A ring of tiles that one thread fills by bulk copies, with the barriers of CUDA C++: a thread that waits for one looks at the clock, and sleeps.
#include <cuda/barrier>

using Barrier = cuda::barrier<cuda::thread_scope_block>;
namespace bulk = cuda::device::experimental;

enum { TILE = 64, SLOTS = 2 };

// Each thread adds up its elements of all tiles. Who arrives for a tile has read the one before: with one slot, that one is overwritten too early.
extern "C" __global__ void add_up(int *sums, const int *from, int tiles, int slots) {
    __shared__ alignas(128) int tile[SLOTS][TILE];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ Barrier full[SLOTS];
    if (threadIdx.x == 0) {
        for (int slot = 0; slot < SLOTS; slot++) init(&full[slot], blockDim.x);
        bulk::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    int sum = 0;
    for (int number = 0; number < tiles; number++) {
        int slot = number % slots;
        Barrier::arrival_token filled;
        if (threadIdx.x == 0) {
            bulk::cp_async_bulk_global_to_shared(tile[slot], from + number * TILE, sizeof(tile[slot]), full[slot]);
            filled = cuda::device::barrier_arrive_tx(full[slot], 1, sizeof(tile[slot]));
        } else {
            filled = full[slot].arrive();
        }
        full[slot].wait(std::move(filled));
        sum += tile[slot][threadIdx.x];
    }
    sums[threadIdx.x] = sum;
}
