// PE 0 copies 16 bytes through shared memory to PE 1 by bulk copies, and sets a flag, for which PE 1 waits. `how` says which waits are missing.
#include <nvshmem.h>
enum { NO_PHASE = 1, READ_ONLY = 2, NO_GROUP = 4, REUSE = 8, OVERWRITE = 16, BY_ALL = 32, ONE_LATE = 64, NO_FENCE = 128, REDUCE = 256 };

__device__ unsigned in_shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void await(uint64_t *barrier) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
                 "@done bra finished;\n"
                 "bra again;\n"
                 "finished:\n"
                 "}" ::"r"(in_shared(barrier)) : "memory");
}

extern "C" __global__ void copies(int *from, int *to, int *flag, int *seen, int how) {
    __shared__ alignas(128) int buffer[8];
    __shared__ alignas(8) uint64_t barrier;
    if (nvshmem_my_pe() == 1) {
        int set = 0;
        while (threadIdx.x == 0 && !set) asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(set) : "l"(flag) : "memory");
        __syncthreads();
        if (threadIdx.x == 1) *seen = to[0];
        return;
    }
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(in_shared(&barrier)));
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" ::"r"(in_shared(&barrier)) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 16, [%2];" ::"r"(in_shared(buffer)), "l"(from),
                     "r"(in_shared(&barrier)) : "memory");
    }
    if (how & BY_ALL) await(&barrier);
    else if (threadIdx.x == 0 && !(how & (NO_PHASE | OVERWRITE))) await(&barrier);
    if (threadIdx.x == 0 && how & OVERWRITE) from[0] = 7;
    __syncthreads();
    if (threadIdx.x == 1) buffer[0] += 1;
    if (!(how & NO_FENCE)) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        int *theirs = (int *)nvshmem_ptr(to, 1);
        if (how & REDUCE) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 16;" ::"l"(theirs), "r"(in_shared(buffer)) : "memory");
        else asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" ::"l"(theirs), "r"(in_shared(buffer)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        if (how & ONE_LATE) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" ::"l"(theirs + 4), "r"(in_shared(buffer)) : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            asm volatile("cp.async.bulk.wait_group 1;" ::: "memory");
        } else if (how & READ_ONLY) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        else if (!(how & NO_GROUP)) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        asm volatile("st.release.sys.global.s32 [%0], 1;" ::"l"((int *)nvshmem_ptr(flag, 1)) : "memory");
    }
    __syncthreads();
    if (threadIdx.x == 1 && how & REUSE) buffer[0] = 9;
}

// Each of the first `pes` PEs adds 1 to four numbers of PE 0 by a reduction in bulk.
extern "C" __global__ void reduces(int *to, int pes) {
    __shared__ alignas(16) int buffer[4];
    if (nvshmem_my_pe() >= pes) return;
    for (int i = 0; i < 4; i++) buffer[i] = 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 16;" ::"l"(nvshmem_ptr(to, 0)), "r"(in_shared(buffer)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
