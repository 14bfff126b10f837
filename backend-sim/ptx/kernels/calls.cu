// One thread makes the same device call again and again, to PE 1: what a call costs. All kernels take the same arguments.
#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void p(long long *dst, const long long *src, uint64_t *flag, int count, int calls) {
    for (int i = 0; i < calls; i++) nvshmem_longlong_p(dst, i, 1);
}

extern "C" __global__ void g(long long *dst, const long long *src, uint64_t *flag, int count, int calls) {
    long long sum = 0;
    for (int i = 0; i < calls; i++) sum += nvshmem_longlong_g(src, 1);
    *dst = sum;
}

extern "C" __global__ void put(long long *dst, const long long *src, uint64_t *flag, int count, int calls) {
    for (int i = 0; i < calls; i++) nvshmem_longlong_put(dst, src, count, 1);
}

extern "C" __global__ void signal_op(long long *dst, const long long *src, uint64_t *flag, int count, int calls) {
    for (int i = 0; i < calls; i++) nvshmemx_signal_op(flag, i, NVSHMEM_SIGNAL_SET, 1);
}

extern "C" __global__ void fence(long long *dst, const long long *src, uint64_t *flag, int count, int calls) {
    for (int i = 0; i < calls; i++) nvshmem_fence();
}

extern "C" __global__ void quiet(long long *dst, const long long *src, uint64_t *flag, int count, int calls) {
    for (int i = 0; i < calls; i++) nvshmem_quiet();
}
