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
