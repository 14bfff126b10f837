// All blocks of the grid wait for each other, between two steps that need each other's results.
#include <cooperative_groups.h>
namespace groups = cooperative_groups;

extern "C" __global__ void grid_sync(int *first, int *second, int blocks) {
    groups::grid_group grid = groups::this_grid();
    if (threadIdx.x == 0) first[blockIdx.x] = blockIdx.x + 1;
    grid.sync();
    if (threadIdx.x == 0) second[blockIdx.x] = first[(blockIdx.x + 1) % blocks] * 10;
    grid.sync();
}

extern "C" __global__ void tiles(int *out, const int *in) {
    groups::thread_block block = groups::this_thread_block();
    auto tile = groups::tiled_partition<8>(block);
    int value = in[block.thread_rank()];
    for (int distance = tile.size() / 2; distance > 0; distance /= 2) value += tile.shfl_down(value, distance);
    block.sync();
    if (tile.thread_rank() == 0) out[block.thread_rank() / 8] = value;
}

// Blocks take tickets before they meet, and look afterwards at what all have stored.
extern "C" __global__ void tickets(int *first, int *second, int blocks) {
    groups::grid_group grid = groups::this_grid();
    int ticket = atomicAdd(first, 1);
    *(volatile int *)(second + blockIdx.x) = 1;
    grid.sync();
    int sum = 0;
    for (int block = 0; block < blocks; block++) sum += *(volatile int *)(second + block);
    grid.sync();
    second[blockIdx.x] = 10 * ticket + sum;
}

// The last block does not come.
extern "C" __global__ void one_stays_away(int *first, int *second, int blocks) {
    groups::grid_group grid = groups::this_grid();
    if (blockIdx.x < blocks - 1) grid.sync();
}
