// What the kernels of the chapter have in common. All take the same arguments, unless they say otherwise: `in` holds 100 * rank + index;
// `data`, `words` and `out` begin as zeros. What is seen is the beginning of `data` and `words`, and `out`.
#include <nvshmem.h>
#include <nvshmemx.h>

#define KERNEL(NAME) extern "C" __global__ void NAME(int *in, int *data, uint64_t *words, int *out)
// The same, and a team: PEs 0 and 2 of three, which run the kernel.
#define OF_TEAM(NAME)                                                                                                   \
    extern "C" __global__ void NAME(int *in, int *data, uint64_t *words, int *out, nvshmem_team_t team)
#define ME nvshmem_my_pe()
#define N nvshmem_n_pes()
#define NEXT ((ME + 1) % N)
#define FIRST (threadIdx.x == 0)
