// What libraries compile to: CUB's scan and reduction of a block, cuda::atomic_ref, copies of cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cuda/atomic>
namespace groups = cooperative_groups;

extern "C" __global__ void cub_scan(int *out, const int *in) {
    using Scan = cub::BlockScan<int, 128>;
    using Reduce = cub::BlockReduce<float, 128>;
    __shared__ typename Scan::TempStorage scan;
    __shared__ typename Reduce::TempStorage reduce;
    int before;
    Scan(scan).ExclusiveSum(in[threadIdx.x], before);
    float sum = Reduce(reduce).Sum((float)in[threadIdx.x]);
    out[threadIdx.x] = threadIdx.x == 0 ? (int)sum : before;
}

extern "C" __global__ void cuda_atomics(int *out, int *word, const int *in) {
    cuda::atomic_ref<int, cuda::thread_scope_system> flag(*word);
    if (threadIdx.x == 0) {
        int expected = 9;
        flag.fetch_add(3, cuda::memory_order_release);
        flag.fetch_max(9);
        flag.compare_exchange_strong(expected, 10);
    }
    while (flag.load(cuda::memory_order_acquire) != 10) {}

    __shared__ int copy[128];
    groups::thread_block block = groups::this_thread_block();
    groups::memcpy_async(block, copy, in, sizeof(copy));
    groups::wait(block);
    auto tile = groups::tiled_partition<32>(block);
    out[threadIdx.x] = copy[127 - threadIdx.x] + groups::reduce(tile, in[threadIdx.x], groups::plus<int>());
}
