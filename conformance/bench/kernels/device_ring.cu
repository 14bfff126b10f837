// Every PE's thread puts its rank into the next PE's memory: the first kernel of NVIDIA's guide.
#include <nvshmem.h>

extern "C" __global__ void ring(int *dst) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    nvshmem_int_p(dst, me, (me + 1) % n);
#ifndef BROKEN
    nvshmem_quiet();
#endif
    // BROKEN: the kernel ends before its put is complete, and the PEs only meet afterwards.
}
