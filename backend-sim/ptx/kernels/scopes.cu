// Fences of a scope: PEs may be on different GPUs, the blocks of one PE are on one.
#include <nvshmem.h>
#include <nvshmemx.h>

// PE 0 stores through a pointer and sets a flag; PE 1 polls it and reads. Each fences in the scope of the system, or of its GPU only.
extern "C" __global__ void between_pes(int *data, uint64_t *flag, int *seen, int writer_system, int reader_system) {
    if (nvshmem_my_pe() == 0) {
        *(int *)nvshmem_ptr(data, 1) = 42;
        if (writer_system) {
            __threadfence_system();
        } else {
            __threadfence();
        }
        *(volatile uint64_t *)nvshmem_ptr(flag, 1) = 1;
    } else {
        while (*(volatile uint64_t *)flag != 1) {}
        if (reader_system) {
            __threadfence_system();
        } else {
            __threadfence();
        }
        *seen = *data;
    }
}

// A block hands data to another one of its GPU, which polls by loads or waits by a call.
extern "C" __global__ void between_blocks(int *data, uint64_t *flag, int *seen, int call) {
    if (blockIdx.x == 0) {
        *data = 42;
        __threadfence();
        *(volatile uint64_t *)flag = 1;
    } else if (call) {
        nvshmem_uint64_wait_until(flag, NVSHMEM_CMP_EQ, 1);
        *seen = *data;
    } else {
        while (*(volatile uint64_t *)flag != 1) {}
        __threadfence();
        *seen = *data;
    }
}

// Thread 0 of a PE tells thread 0 of the other, each for its block. A fence of thread `i` is before or behind the barrier of the block: bit 2i
// and bit 2i + 1 of `writers` and of `readers`.
__device__ void fence_if(int fences, int behind) {
    if ((fences >> (2 * threadIdx.x + behind)) & 1) __threadfence_system();
}
extern "C" __global__ void for_the_block(int *data, uint64_t *flag, int *seen, int writers, int readers) {
    if (nvshmem_my_pe() == 0) {
        if (threadIdx.x == 1) *(int *)nvshmem_ptr(data, 1) = 42;
        fence_if(writers, 0);
        __syncthreads();
        fence_if(writers, 1);
        if (threadIdx.x == 0) *(volatile uint64_t *)nvshmem_ptr(flag, 1) = 1;
    } else {
        if (threadIdx.x == 0) {
            while (*(volatile uint64_t *)flag != 1) {}
        }
        fence_if(readers, 0);
        __syncthreads();
        fence_if(readers, 1);
        if (threadIdx.x == 1) *seen = *data;
    }
}

// Two blocks without any order: one fills a row, the other changes one word of it.
extern "C" __global__ void row(int *data, uint64_t *flag, int *seen, int which) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = 1;
    } else if (threadIdx.x == which) {
        data[which] = 2;
    }
}
