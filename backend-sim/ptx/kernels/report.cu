// printf and assert.
#ifndef __CUDACC_RTC__
#include <assert.h>
#endif

extern "C" __global__ void report(const int *values, double factor) {
    const int i = threadIdx.x;
    printf("thread %d of block %d: %5d|%-6u|%08x|%lld|%c|%s\n", i, blockIdx.x, values[i], 7u, 0xbeefu, -1ll << 40, 'x', "text");
    printf("%f %.3e %g %5.1f%%\n", factor, factor, factor, 99.5);
}

extern "C" __global__ void checked(const int *values, int limit) {
    assert(values[threadIdx.x] < limit);
}
