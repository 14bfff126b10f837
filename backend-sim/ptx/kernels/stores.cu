// Plain stores to the other PE's memory, what stands behind them, and a signal. The other PE waits for it, and reads.
#include <nvshmem.h>
#include <nvshmemx.h>

#define OTHER (1 - nvshmem_my_pe())
#define KERNEL(NAME) extern "C" __global__ void NAME(int *data, uint64_t *signal, int *seen)

// Both threads store.
__device__ void store(int *data) {
    ((int *)nvshmem_ptr(data, OTHER))[threadIdx.x] = 1 + threadIdx.x;
}
__device__ void signal_other(uint64_t *signal) {
    if (threadIdx.x == 0) nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, OTHER);
}
__device__ void receive(const int *data, uint64_t *signal, int *seen) {
    if (threadIdx.x == 0) {
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
        *seen = data[0] + data[1];
    }
}

KERNEL(no_fence) {
    store(data);
    __syncthreads();
    signal_other(signal);
    receive(data, signal, seen);
}
KERNEL(fence_of_the_gpu) {
    store(data);
    __threadfence();
    __syncthreads();
    signal_other(signal);
    receive(data, signal, seen);
}
KERNEL(fence_of_one_before_the_barrier) {
    store(data);
    if (threadIdx.x == 0) __threadfence_system();
    __syncthreads();
    signal_other(signal);
    receive(data, signal, seen);
}
KERNEL(put_signal) {
    store(data);
    __syncthreads();
    if (threadIdx.x == 0) nvshmem_int_put_signal(data + 2, data + 2, 1, signal, 1, NVSHMEM_SIGNAL_SET, OTHER);
    receive(data, signal, seen);
}
KERNEL(atomic) {
    store(data);
    __syncthreads();
    if (threadIdx.x == 0) nvshmem_uint64_atomic_set(signal, 1, OTHER);
    receive(data, signal, seen);
}
// A put may overtake the store.
KERNEL(put_behind) {
    store(data);
    __syncthreads();
    if (threadIdx.x == 0) {
        nvshmem_int_p(data, 5, OTHER);
        nvshmem_quiet();
    }
    signal_other(signal);
    receive(data, signal, seen);
}

KERNEL(fence_of_each) {
    store(data);
    __threadfence_system();
    __syncthreads();
    signal_other(signal);
    receive(data, signal, seen);
}
KERNEL(fence_of_one_behind_the_barrier) {
    store(data);
    __syncthreads();
    if (threadIdx.x == 0) __threadfence_system();
    signal_other(signal);
    receive(data, signal, seen);
}
KERNEL(nvshmem_fence_of_one) {
    store(data);
    __syncthreads();
    if (threadIdx.x == 0) nvshmem_fence();
    signal_other(signal);
    receive(data, signal, seen);
}
KERNEL(quiet_of_one) {
    store(data);
    __syncthreads();
    if (threadIdx.x == 0) nvshmem_quiet();
    signal_other(signal);
    receive(data, signal, seen);
}
KERNEL(release) {
    store(data);
    __syncthreads();
    if (threadIdx.x == 0) {
        uint64_t *there = (uint64_t *)nvshmem_ptr(signal, OTHER);
        asm volatile("st.release.sys.global.u64 [%0], 1;" ::"l"(there) : "memory");
    }
    receive(data, signal, seen);
}
KERNEL(sync) {
    store(data);
    __syncthreads();
    nvshmemx_sync_all_block();
    if (threadIdx.x == 0) *seen = data[0] + data[1];
}
// On one GPU, stores and loads of threads that have met are in order.
KERNEL(one_word) {
    int *there = (int *)nvshmem_ptr(data, OTHER);
    if (threadIdx.x == 0) there[0] = 7;
    __syncthreads();
    if (threadIdx.x == 1) there[0] = there[0] - 4;
    __syncthreads();
    if (threadIdx.x == 0) nvshmem_quiet();
    signal_other(signal);
    receive(data, signal, seen);
}
// Who waits for the kernel comes after its stores.
KERNEL(end) {
    store(data);
}
// Two blocks: one stores, the other one fences and signals.
KERNEL(beside) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) *(int *)nvshmem_ptr(data, OTHER) = 1;
    } else if (threadIdx.x == 0) {
        nvshmem_fence();
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, OTHER);
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
        *seen = *(volatile int *)data;
    }
}

// The fence of another block comes behind an access of its own, which nothing orders with the store either.
KERNEL(beside_an_access) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) *(int *)nvshmem_ptr(data, OTHER) = 1;
    } else if (threadIdx.x == 0) {
        seen[0] = *(volatile int *)(data + 1);
        __threadfence_system();
        *(volatile unsigned long long *)nvshmem_ptr(signal, OTHER) = 1;
        while (*(volatile unsigned long long *)signal == 0) {}
        *seen = *(volatile int *)data;
    }
}

// A sync of another block completes no store that it does not come after.
KERNEL(sync_of_another_block) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            data[1] = 1;
            nvshmem_int_p(data, 1, OTHER);
        }
    } else if (threadIdx.x == 0) {
        nvshmem_sync_all();
        *seen = data[1];
    }
}

// A get is no load: it may overtake what its own thread has stored, unless a quiet stands between.
KERNEL(get_behind) {
    ((int *)nvshmem_ptr(data, OTHER))[threadIdx.x] = 1;
    *(threadIdx.x == 0 ? seen : data + 2) = nvshmem_int_g(data + threadIdx.x, OTHER);
}
KERNEL(get_behind_a_quiet) {
    ((int *)nvshmem_ptr(data, OTHER))[threadIdx.x] = 1;
    nvshmem_quiet();
    *(threadIdx.x == 0 ? seen : data + 2) = nvshmem_int_g(data + threadIdx.x, OTHER);
}
KERNEL(load_behind) {
    ((int *)nvshmem_ptr(data, OTHER))[threadIdx.x] = 1;
    *(threadIdx.x == 0 ? seen : data + 2) = ((volatile int *)nvshmem_ptr(data, OTHER))[threadIdx.x];
}
