// Polls that give up: after a time, or after so many looks.
#include <nvshmem.h>

__device__ int acquire(const int *from) {
    int found;
    asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(found) : "l"(from) : "memory");
    return found;
}

__device__ void release(int *to, int value) {
    asm volatile("st.release.sys.global.s32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

// Warps 1 and 3 tell PEs 0 and 1, and warps 0 and 2 wait for what these tell, each behind a wait at an mbarrier of its own.
extern "C" __global__ void each_waits_for_a_time(int *flags) {
    __shared__ alignas(8) unsigned long long barriers[4];
    const int warp = threadIdx.x / 32, pe = warp / 2;
    if (threadIdx.x % 32 > 0) return;
    const unsigned barrier = (unsigned)__cvta_generic_to_shared(&barriers[warp]);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
    asm volatile("{\n.reg .pred p;\nwaits: mbarrier.test_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra waits;\n}" ::"r"(barrier) : "memory");
    if (warp % 2) release((int *)nvshmem_ptr(flags + nvshmem_my_pe(), pe), 1);
    const long long start = clock64();
    while (warp % 2 == 0 && acquire(flags + pe) == 0 && clock64() - start <= 200000000000) {}
}

// The last PE tells the first, which tells the next, and so on. Who has looked more often than that gives up.
extern "C" __global__ void each_counts_its_looks(int *flag, int most) {
    const int me = nvshmem_my_pe(), next = (me + 1) % nvshmem_n_pes();
    if (me == nvshmem_n_pes() - 1) release((int *)nvshmem_ptr(flag, next), 1);
    for (int looks = 0; acquire(flag) == 0; looks++) {
        if (looks == most) __trap();
    }
    if (next > 0) release((int *)nvshmem_ptr(flag, next), 1);
}

// Each PE tells the next one, and waits to be told. Who gives up says what it finds then.
extern "C" __global__ void each_says_what_it_finds(int *flag, int wanted) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    release((int *)nvshmem_ptr(flag, (me + 1) % n), 1);
    const long long start = clock64();
    while (acquire(flag) != wanted) {
        if (clock64() - start > 2000000000) {
            printf("PE %d waits for %d, and finds %d\n", me, wanted, acquire(flag));
            __trap();
        }
    }
}
