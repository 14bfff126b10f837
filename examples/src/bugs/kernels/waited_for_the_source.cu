//! A bulk copy to another PE, whose sender waits until the source has been read, and then tells the reader.
//!
//! `cp.async.bulk.wait_group.read` says that shared memory may be used again. The data is at its destination behind `cp.async.bulk.wait_group`.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    __shared__ alignas(16) int tile[4];
    if (nvshmem_my_pe() == 0) {
        for (int i = 0; i < 4; i++) tile[i] = mine[i];
        int *theirs = (int *)nvshmem_ptr(data, 1);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" ::"l"(theirs), "r"((unsigned)__cvta_generic_to_shared(tile)) : "memory"); // bug: first
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"((uint64_t *)nvshmem_ptr(flags, 1)), "l"(1ull) : "memory");
    } else {
        uint64_t flag;
        do {
            asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(flag) : "l"(flags) : "memory");
        } while (flag == 0);
        if (data[3] != 4) *wrong = 1; // bug: second
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    __shared__ alignas(16) int tile[4];
    if (nvshmem_my_pe() == 0) {
        for (int i = 0; i < 4; i++) tile[i] = mine[i];
        int *theirs = (int *)nvshmem_ptr(data, 1);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" ::"l"(theirs), "r"((unsigned)__cvta_generic_to_shared(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"((uint64_t *)nvshmem_ptr(flags, 1)), "l"(1ull) : "memory");
    } else {
        uint64_t flag;
        do {
            asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(flag) : "l"(flags) : "memory");
        } while (flag == 0);
        if (data[3] != 4) *wrong = 1;
    }
}
