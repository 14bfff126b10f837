// Multicast addresses: an all-reduce of two shots, as reductions in switches have it.
#include <nvshmem.h>
#include <nvshmemx.h>

__device__ void add_to_all(uint64_t *word, bool release) {
    if (release) {
        asm volatile("multimem.red.release.sys.global.add.u64 [%0], %1;" ::"l"(word), "l"(1ull) : "memory");
    } else {
        asm volatile("multimem.red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(word), "l"(1ull) : "memory");
    }
}

__device__ void wait_for(uint64_t *word, uint64_t value) {
    uint64_t seen;
    do {
        asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(word) : "memory");
    } while (seen < value);
}

// `x` has four numbers for each PE, and `arrived` a word. What `x` holds in the end are the sums.
extern "C" __global__ void two_shots(float *x, uint64_t *arrived, int release) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    float *all = (float *)nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, x) + 4 * me;
    uint64_t *all_arrived = (uint64_t *)nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, arrived);
    for (int i = 0; i < 4 * n; i++) x[i] = 10 * me + i;
    add_to_all(all_arrived, release & 1);
    wait_for(arrived, n);
    float a, b, c, d;
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(all) : "memory");
    asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(all), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
    add_to_all(all_arrived, release & 2);
    wait_for(arrived, 2 * n);
    for (int i = 0; i < 4 * n; i++) assert(x[i] == 10 * (n * (n - 1) / 2) + n * i);
}

// What the address is: null, or one that is not for ordinary loads.
extern "C" __global__ void addresses(float *x, uint64_t *arrived, int loads) {
    float *all = (float *)nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, x);
    if (loads == 1) x[1] = all[0];
    if (loads == 2) asm volatile("multimem.st.global.f32 [%0], %1;" ::"l"(x), "f"(1.0f) : "memory");
    *arrived = all != nullptr;
}

// All threads meet by the barrier of a cluster, which is their block.
extern "C" __global__ void cluster(float *x, uint64_t *arrived, int how) {
    __shared__ float words[64];
    words[threadIdx.x] = threadIdx.x;
    if (how != 1 || threadIdx.x > 0) asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    if (how == 2) asm volatile("barrier.cluster.arrive;" ::: "memory");
    if (how != 3) asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    unsigned there, here = (unsigned)__cvta_generic_to_shared(&words[63 - threadIdx.x]);
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(how == 4 ? 1 : 0));
    float value;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(there) : "memory");
    x[threadIdx.x] = value;
    if (threadIdx.x == 0) *arrived = 1;
}
