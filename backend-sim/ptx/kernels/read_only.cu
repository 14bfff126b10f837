// Read-only loads (ld.global.nc) of what is written while their kernel runs, and of what is not.
#include <nvshmem.h>
#include <nvshmemx.h>

#define NEXT ((nvshmem_my_pe() + 1) % nvshmem_n_pes())

// How the data is read, and how it is written.
enum { PLAIN = 0, LDG = 1, FOUR = 2, PEER = 3, BESIDE = 4 };
enum { PUT = 0, STORE = 1, ADD = 2, OWN = 3 };

__device__ int read(int *data, int how) {
    if (how == LDG) return __ldg(data);
    if (how == BESIDE) return __ldg(data + 4);
    if (how == PEER) return __ldg((int *)nvshmem_ptr(data, NEXT));
    if (how == FOUR) {
        int4 four;
        asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.s32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w) : "l"(data));
        return four.x;
    }
    return *(volatile int *)data;
}

// Each PE writes to the next one's data, meets it, and reads its own.
extern "C" __global__ void reads(int *data, int *seen, int how, int writes) {
    if (writes == PUT) nvshmem_int_p(data, 42, NEXT);
    if (writes == STORE) *(int *)nvshmem_ptr(data, NEXT) = 42;
    if (writes == ADD) nvshmem_int_atomic_add(data, 42, NEXT);
    if (writes == OWN) *data = 42;
    __threadfence_system();
    nvshmem_barrier_all();
    *seen = read(data, how);
}

// The same by a put, in a kernel whose pointer lets the compiler load read-only.
extern "C" __global__ void restricted(const int *__restrict__ data, int *to, int *__restrict__ seen) {
    nvshmem_int_p(to, 42, NEXT);
    nvshmem_barrier_all();
    *seen = data[0] + data[1];
}

// Only reads: what was written before the launch.
extern "C" __global__ void only_reads(int *data, int *seen, int how) { *seen = read(data, how); }

// Threads of a warp read together, each what its neighbour has written.
extern "C" __global__ void neighbours(int *data, int *seen, int how) {
    data[threadIdx.x] = 42;
    __syncthreads();
    int *neighbour = data + (threadIdx.x + 1) % blockDim.x;
    seen[threadIdx.x] = how == LDG ? __ldg(neighbour) : *neighbour;
}
