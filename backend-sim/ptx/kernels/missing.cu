// Races in kernels, each with what a report says that is missing: with `fixed` it is there, and nothing races.
#include <nvshmem.h>
#include <nvshmemx.h>

#define NEXT ((nvshmem_my_pe() + 1) % nvshmem_n_pes())
#define BEFORE ((nvshmem_my_pe() + nvshmem_n_pes() - 1) % nvshmem_n_pes())
#define KERNEL(name) extern "C" __global__ void name(int *data, uint64_t *flag, int *seen, int fixed)

__device__ void set(uint64_t *flag, int pe) { *(volatile uint64_t *)nvshmem_ptr(flag, pe) = 1; }

__device__ void poll(uint64_t *flag) {
    while (*(volatile uint64_t *)flag != 1) {}
}

// Everybody stores to the next PE, and one thread sets a flag there.
KERNEL(flag_set) {
    ((int *)nvshmem_ptr(data, NEXT))[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        if (fixed) __threadfence_system();
        set(flag, NEXT);
        poll(flag);
        __threadfence_system();
    }
    __syncthreads();
    seen[threadIdx.x] = data[threadIdx.x];
}

KERNEL(flag_read) {
    ((int *)nvshmem_ptr(data, NEXT))[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        set(flag, NEXT);
        poll(flag);
        if (fixed) __threadfence_system();
    }
    __syncthreads();
    seen[threadIdx.x] = data[threadIdx.x];
}

// One thread puts and signals, and another one fences.
KERNEL(fence_by_another) {
    if (threadIdx.x == 0) nvshmem_int_put_nbi(data, data + 4, 4, NEXT);
    __syncthreads();
    if (threadIdx.x == (fixed ? 0 : 1)) nvshmem_fence();
    if (threadIdx.x == 0) {
        nvshmemx_signal_op(flag, 1, NVSHMEM_SIGNAL_SET, NEXT);
        nvshmem_signal_wait_until(flag, NVSHMEM_CMP_EQ, 1);
        seen[0] = data[0];
    }
}

// One thread puts, and another one uses the source again.
KERNEL(source_used_by_another) {
    if (threadIdx.x == 0) nvshmem_int_put_nbi(data, data + 4, 4, NEXT);
    if (fixed) nvshmem_quiet();
    __syncthreads();
    if (threadIdx.x == 1) data[4] = 9;
}

// A put to oneself, for which one thread waits.
KERNEL(awaited_by_one) {
    if (threadIdx.x == 0) nvshmem_int_put_signal_nbi(data, data + 4, 4, flag, 1, NVSHMEM_SIGNAL_SET, nvshmem_my_pe());
    __syncthreads();
    if (threadIdx.x == 0) nvshmem_signal_wait_until(flag, NVSHMEM_CMP_EQ, 1);
    if (fixed) __syncthreads();
    seen[threadIdx.x] = data[threadIdx.x];
}

// To both neighbours: a fence is enough, also for the put whose signal is not the next one.
KERNEL(two_neighbours) {
    if (threadIdx.x == 0) {
        nvshmem_int_put_nbi(data, data + 4, 1, BEFORE);
        nvshmem_int_put_nbi(data + 1, data + 5, 1, NEXT);
        if (fixed) nvshmem_fence();
        nvshmemx_signal_op(flag, 1, NVSHMEM_SIGNAL_SET, BEFORE);
        nvshmemx_signal_op(flag + 1, 1, NVSHMEM_SIGNAL_SET, NEXT);
        nvshmem_signal_wait_until(flag + 1, NVSHMEM_CMP_EQ, 1);
        seen[1] = data[1];
    }
}

KERNEL(counter) {
    if (fixed) {
        atomicAdd(data, 1);
    } else {
        data[0] += 1;
    }
}

KERNEL(same_value) {
    if (!fixed || threadIdx.x == 0) data[0] = 1;
}

// Reads and writes by one line, but of different places: a barrier is missing.
KERNEL(in_place) {
    if (fixed) {
        int value = data[threadIdx.x + 1];
        __syncthreads();
        data[threadIdx.x] = value;
    } else {
        data[threadIdx.x] = data[threadIdx.x + 1];
    }
}

// All threads put, one of them fences before the barrier, and one signals behind it.
KERNEL(fence_before_the_barrier) {
    nvshmem_int_p(data + threadIdx.x, 7, NEXT);
    if (fixed || threadIdx.x == 0) nvshmem_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        nvshmemx_signal_op(flag, 1, NVSHMEM_SIGNAL_SET, NEXT);
        nvshmem_signal_wait_until(flag, NVSHMEM_CMP_EQ, 1);
    }
    __syncthreads();
    seen[threadIdx.x] = data[threadIdx.x];
}

// The same without any fence; repaired, one behind the barrier.
KERNEL(fence_for_the_block) {
    nvshmem_int_p(data + threadIdx.x, 7, NEXT);
    __syncthreads();
    if (threadIdx.x == 0) {
        if (fixed) nvshmem_fence();
        nvshmemx_signal_op(flag, 1, NVSHMEM_SIGNAL_SET, NEXT);
        nvshmem_signal_wait_until(flag, NVSHMEM_CMP_EQ, 1);
    }
    __syncthreads();
    seen[threadIdx.x] = data[threadIdx.x];
}
