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

// What two PEs do to one word, in the scope of the system or of the GPU.
__device__ void add(uint64_t *word, int system) {
    if (system) {
        atomicAdd_system((unsigned long long *)word, 1);
    } else {
        atomicAdd((unsigned long long *)word, 1);
    }
}
__device__ uint64_t look(uint64_t *word, int system) {
    uint64_t value;
    if (system) {
        asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    } else {
        asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    }
    return value;
}
// PE 1 polls the signal that PE 0 sends.
extern "C" __global__ void polls_a_signal(int *data, uint64_t *flag, int *seen, int system) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_p(data, 42, 1);
        nvshmem_fence();
        nvshmemx_signal_op(flag, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        while (look(flag, system) != 1) {}
        *seen = *data;
    }
}
// PE 1 waits for the flag that PE 0 sets by an atomic of its own.
extern "C" __global__ void sets_a_flag(int *data, uint64_t *flag, int *seen, int system) {
    if (nvshmem_my_pe() == 0) {
        *(int *)nvshmem_ptr(data, 1) = 42;
        __threadfence_system();
        add((uint64_t *)nvshmem_ptr(flag, 1), system);
    } else {
        nvshmem_signal_wait_until(flag, NVSHMEM_CMP_EQ, 1);
        *seen = *data;
    }
}
// Two PEs count, the other one by NVSHMEM or through a pointer.
extern "C" __global__ void count_by_calls(int *data, uint64_t *flag, int *seen, int system) {
    if (nvshmem_my_pe() == 0) {
        add(flag, system);
    } else {
        nvshmem_uint64_atomic_inc(flag, 0);
        nvshmem_quiet();
    }
}
extern "C" __global__ void count_by_pointer(int *data, uint64_t *flag, int *seen, int system) {
    add((uint64_t *)nvshmem_ptr(flag, 0), system);
}
// Each PE counts on its own GPU, by both.
extern "C" __global__ void count_at_home(int *data, uint64_t *flag, int *seen, int system) {
    add(flag, system);
    nvshmem_uint64_atomic_inc(flag, nvshmem_my_pe());
    nvshmem_quiet();
    *seen = look(flag, system) == 2 ? 42 : 0;
}
// Nobody writes.
extern "C" __global__ void two_look(int *data, uint64_t *flag, int *seen, int system) {
    *seen = look((uint64_t *)nvshmem_ptr(flag, 0), system) + 42;
}
// PE 0 counts on its own GPU; behind a barrier, PE 1 looks.
extern "C" __global__ void then_another_looks(int *data, uint64_t *flag, int *seen, int system) {
    if (nvshmem_my_pe() == 0) add(flag, system);
    nvshmem_barrier_all();
    if (nvshmem_my_pe() == 1) *seen = *(volatile uint64_t *)nvshmem_ptr(flag, 0) + 41;
}

// A thread stores and sets a flag, and another one polls that and reads: thread 1, or thread 0 of block 1 where there is one. Each in a scope: a
// fence of the block or of the GPU beside a volatile access, an access in the scope of the block behind or before a fence of the GPU, or a release
// and an acquire in the scope of the block or of the GPU.
__device__ uint64_t acquire(const uint64_t *flag, bool block) {
    uint64_t value;
    if (block) {
        asm volatile("ld.acquire.cta.global.u64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
    } else {
        asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
    }
    return value;
}
__device__ void release(uint64_t *flag, bool block) {
    if (block) {
        asm volatile("st.release.cta.global.u64 [%0], 1;" ::"l"(flag) : "memory");
    } else {
        asm volatile("st.release.gpu.global.u64 [%0], 1;" ::"l"(flag) : "memory");
    }
}
enum { FENCE_BLOCK, FENCE_GPU, ATOMIC_BLOCK, ORDERED_BLOCK, ORDERED_GPU };
extern "C" __global__ void scoped(int *data, uint64_t *flag, int *seen, int writer, int reader) {
    bool last = blockIdx.x == gridDim.x - 1 && threadIdx.x == blockDim.x - 1;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *data = 42;
        if (writer == FENCE_BLOCK) __threadfence_block();
        if (writer == FENCE_GPU || writer == ATOMIC_BLOCK) __threadfence();
        if (writer == FENCE_BLOCK || writer == FENCE_GPU) *(volatile uint64_t *)flag = 1;
        if (writer == ATOMIC_BLOCK) atomicExch_block((unsigned long long *)flag, 1);
        if (writer == ORDERED_BLOCK || writer == ORDERED_GPU) release(flag, writer == ORDERED_BLOCK);
    } else if (last) {
        if (reader == FENCE_BLOCK || reader == FENCE_GPU) while (*(volatile uint64_t *)flag != 1) {}
        if (reader == ATOMIC_BLOCK) while (atomicAdd_block((unsigned long long *)flag, 0) != 1) {}
        if (reader == ORDERED_BLOCK || reader == ORDERED_GPU) while (acquire(flag, reader == ORDERED_BLOCK) != 1) {}
        if (reader == FENCE_BLOCK) __threadfence_block();
        if (reader == FENCE_GPU || reader == ATOMIC_BLOCK) __threadfence();
        *seen = *data;
    }
}

// The flag's first update is by a thread of block 0 or PE 0, the second by another block, or another PE, and then the first one's block, or PE, polls
// it: what it learns there takes a fence in no wider scope.
extern "C" __global__ void through_another(int *data, uint64_t *flag, int *seen, int pes) {
    unsigned long long *there = (unsigned long long *)(pes ? nvshmem_ptr(flag, 0) : flag);
    bool writes = blockIdx.x == 0 && threadIdx.x == 0 && (!pes || nvshmem_my_pe() == 0);
    bool passes = pes ? nvshmem_my_pe() == 1 && blockIdx.x == 0 : blockIdx.x == 1;
    bool reads = pes ? nvshmem_my_pe() == 0 && blockIdx.x == 1 : blockIdx.x == 0 && threadIdx.x == 1;
    if (writes) {
        *data = 42;
        __threadfence();
        atomicAdd_system(there, 1ULL);
    } else if (passes && threadIdx.x == 0) {
        while (*(volatile unsigned long long *)there != 1) {}
        atomicAdd_system(there, 1ULL);
    } else if (reads) {
        while (*(volatile unsigned long long *)there != 2) {}
        if (pes) __threadfence(); else __threadfence_block();
        *seen = *data;
    }
}
