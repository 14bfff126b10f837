// Hand-overs of two PEs that lack one thing, which a report is to name: as reductions by peer pointers and halo exchanges have them.
#include <nvshmem.h>
#include <nvshmemx.h>

// Rounds by peer pointers: PE 0 stores and sets a flag, PE 1 polls it, reads and answers. Other fences of the threads have the scope of the GPU, and
// stand before what is stored and behind what is read.
extern "C" __global__ void rounds(int *data, uint64_t *flag, int *seen, int releases, int acquires) {
    for (int round = 0; round < 2; round++) {
        if (nvshmem_my_pe() == 0) {
            __threadfence();
            ((int *)nvshmem_ptr(data, 1))[round] = 21;
            if (releases) __threadfence_system();
            *(volatile uint64_t *)nvshmem_ptr(flag, 1) = round + 1;
            while (*(volatile uint64_t *)flag != round + 1) {}
        } else {
            while (*(volatile uint64_t *)flag != round + 1) {}
            if (acquires) __threadfence_system();
            *seen += data[round];
            __threadfence();
            *(volatile uint64_t *)nvshmem_ptr(flag, 0) = round + 1;
        }
    }
}

// Both threads store, and thread 0 sets the flag behind a barrier of the block.
extern "C" __global__ void behind_the_barrier(int *data, uint64_t *flag, int *seen, int barrier, int fence) {
    if (nvshmem_my_pe() == 0) {
        ((int *)nvshmem_ptr(data, 1))[threadIdx.x] = 42;
        if (barrier) __syncthreads();
        if (threadIdx.x == 0) {
            if (fence) __threadfence_system();
            *(volatile uint64_t *)nvshmem_ptr(flag, 1) = 1;
        }
    } else if (threadIdx.x == 0) {
        while (*(volatile uint64_t *)flag != 1) {}
        __threadfence_system();
        *seen = data[1];
    }
}

// A barrier by compare-and-swap: each PE sets a word of the other, and takes back its own.
__device__ void swap_barrier(int *words, int before, int between, int behind) {
    const int me = nvshmem_my_pe(), other = 1 - me;
    if (before) __threadfence_system();
    while (atomicCAS_system((int *)nvshmem_ptr(words, other) + me, 0, 1) != 0) {}
    if (between) __threadfence_system();
    while (atomicCAS_system(words + other, 1, 0) != 1) {}
    if (behind) __threadfence_system();
}

extern "C" __global__ void swaps(int *data, uint64_t *flag, int *seen, int before, int behind) {
    *(int *)nvshmem_ptr(data, 1 - nvshmem_my_pe()) = 42;
    swap_barrier((int *)flag, before, 1, behind);
    *seen = *data;
}

// A flag that is set by a plain store, and what it is about.
extern "C" __global__ void plain_flag(int *data, uint64_t *flag, int *seen) {
    if (nvshmem_my_pe() == 0) {
        *(int *)nvshmem_ptr(data, 1) = 42;
        __threadfence_system();
        *(uint64_t *)nvshmem_ptr(flag, 1) = 1;
    } else {
        while (*(volatile uint64_t *)flag != 1) {}
        __threadfence_system();
        *seen = *data;
    }
}

// Blocks of PE 0 send, by pointers or the first by puts, and count; the last one signals. The words behind the data of PE 0 are its counter.
extern "C" __global__ void last_block(int *data, uint64_t *flag, int *seen, int puts, int fence, int acquires) {
    if (nvshmem_my_pe() == 0) {
        if (puts && blockIdx.x == 0) {
            nvshmem_int_p(data, 21, 1);
            nvshmem_int_p(data + 1, 21, 1);
        } else if (!puts) {
            ((int *)nvshmem_ptr(data, 1))[blockIdx.x] = 21;
        }
        if (fence) puts ? nvshmem_fence() : __threadfence_system();
        if (puts) __threadfence();
        const int before = atomicAdd(data + 2, 1);
        if (before == 1) {
            if (acquires) __threadfence_system();
            nvshmemx_signal_op(flag, 1, NVSHMEM_SIGNAL_SET, 1);
        }
    } else if (blockIdx.x == 0) {
        nvshmem_signal_wait_until(flag, NVSHMEM_CMP_EQ, 1);
        *seen = data[0] + data[1];
    }
}

// Writes rows of words, or bytes, by all threads of a warp, and reads them.
extern "C" __global__ void rows(int *words, unsigned char *bytes, int *seen) {
    for (int i = threadIdx.x; i < 64; i += 32) words[i] = i;
    for (int i = threadIdx.x; i < 256; i += 32) bytes[i] = i;
    __syncthreads();
    seen[threadIdx.x] = words[63 - threadIdx.x] + bytes[165];
}

// Two warps of a block hand over by a flag in global memory.
extern "C" __global__ void within_a_block(int *data, uint64_t *flag, int *seen, int releases, int acquires) {
    if (threadIdx.x == 32) {
        data[0] = 42;
        if (releases) __threadfence();
        *(volatile uint64_t *)flag = 1;
    } else if (threadIdx.x == 0) {
        while (*(volatile uint64_t *)flag != 1) {}
        if (acquires) __threadfence();
        *seen = data[0];
    }
}

// Rounds of two threads: what the one stores, the other tells behind a barrier of the block. The first round is right.
extern "C" __global__ void rounds_of_two(int *data, uint64_t *flag, int *seen, int acquires) {
    for (int round = 0; round < 2; round++) {
        if (nvshmem_my_pe() == 0) {
            ((int *)nvshmem_ptr(data, 1))[2 * round + threadIdx.x] = 21;
            __syncthreads();
            if (threadIdx.x == 0) {
                __threadfence_system();
                *(volatile uint64_t *)nvshmem_ptr(flag, 1) = round + 1;
                while (*(volatile uint64_t *)flag != round + 1) {}
            }
            __syncthreads();
        } else if (threadIdx.x == 0) {
            while (*(volatile uint64_t *)flag != round + 1) {}
            if (acquires || round == 0) __threadfence_system();
            *seen += data[2 * round + 1];
            *(volatile uint64_t *)nvshmem_ptr(flag, 0) = round + 1;
        }
    }
}

// Block 1 counts, and stores only then; block 0 tells of it, and may not have waited for that. No barrier of a block is missing.
extern "C" __global__ void told_too_early(int *data, uint64_t *flag, int *seen, int waits) {
    if (nvshmem_my_pe() == 0) {
        if (blockIdx.x == 1) {
            if (threadIdx.x == 1) {
                __threadfence();
                atomicAdd(flag, 1);
            }
            __syncthreads();
            if (threadIdx.x == 0) *(int *)nvshmem_ptr(data, 1) = 42;
            __syncthreads();
            if (threadIdx.x == 0 && waits) {
                __threadfence_system();
                atomicAdd(flag, 1);
            }
            __syncthreads();
        } else if (threadIdx.x == 0) {
            while (*(volatile uint64_t *)flag < 1 + waits) {}
            __threadfence_system();
            *(volatile uint64_t *)nvshmem_ptr(flag, 1) = 1;
        }
    } else if (blockIdx.x == 0 && threadIdx.x == 0) {
        while (*(volatile uint64_t *)flag != 1) {}
        __threadfence_system();
        *seen = *data;
    }
}

// All add to a word of PE 0 by compare-and-swap; the first look at it may be no atomic.
extern "C" __global__ void adds_by_swap(int *data, uint64_t *flag, int *seen, int fetches) {
    int old = fetches ? nvshmem_int_atomic_fetch(data, 0) : nvshmem_int_g(data, 0);
    for (;;) {
        int found = nvshmem_int_atomic_compare_swap(data, old, old + 21, 0);
        if (found == old) break;
        old = found;
    }
}

// Blocks take turns: by a lock, or by tickets. Each adds to what the one before it has left.
extern "C" __global__ void in_turn(int *data, uint64_t *flag, int *seen, int tickets, int acquires, int releases) {
    if (nvshmem_my_pe() == 0 || threadIdx.x != 0) return;
    unsigned *lock = (unsigned *)flag, *next = lock + 1, ticket = 0;
    if (tickets) {
        ticket = atomicAdd(next, 1);
        while (*(volatile unsigned *)lock != ticket) {}
    } else {
        while (atomicCAS(lock, 0, 1) != 0) {}
    }
    if (acquires) __threadfence();
    *data = *data + 21;
    *seen = *data;
    if (releases) __threadfence();
    if (tickets) *(volatile unsigned *)lock = ticket + 1;
    else atomicExch(lock, 0);
}

// Each block counts how often it has come, which orders nothing, and adds to a sum.
extern "C" __global__ void counts_beside(int *data, uint64_t *flag, int *seen, int atomically) {
    if (nvshmem_my_pe() == 0 || threadIdx.x != 0) return;
    atomicAdd((unsigned *)flag, 1);
    if (atomically) atomicAdd(data, 21);
    else *data = *data + 21;
    atomicAdd((unsigned *)flag, 1);
}

// The last block to count tells by a store of its own what all have stored.
extern "C" __global__ void last_block_stores(int *data, uint64_t *flag, int *seen, int fences) {
    if (nvshmem_my_pe() == 0) {
        ((int *)nvshmem_ptr(data, 1))[blockIdx.x] = 21;
        __threadfence_system();
        if (atomicAdd((unsigned *)flag, 1) == gridDim.x - 1) {
            if (fences) __threadfence_system();
            *(volatile uint64_t *)nvshmem_ptr(flag, 1) = 1;
        }
    } else if (blockIdx.x == 0) {
        while (*(volatile uint64_t *)flag != 1) {}
        __threadfence_system();
        *seen = data[0] + data[1];
    }
}

// As `adds_by_swap`, by the atomics of CUDA in the memory of one PE.
extern "C" __global__ void swaps_natively(int *data, uint64_t *flag, int *seen, int strongly) {
    if (nvshmem_my_pe() == 0) return;
    int old, assumed;
    if (strongly) old = *(volatile int *)data;
    else asm volatile("ld.global.b32 %0, [%1];" : "=r"(old) : "l"(data) : "memory");
    do {
        assumed = old;
        old = atomicCAS(data, assumed, assumed + 21);
    } while (old != assumed);
    atomicMax(seen, assumed + 21);
}

// Under a lock of NVSHMEM, a put must be complete before the lock is given back.
extern "C" __global__ void puts_under_a_lock(int *data, uint64_t *flag, int *seen, int quiets) {
    if (nvshmem_my_pe() == 0) return;
    while (nvshmem_uint64_atomic_compare_swap(flag, 0, 1, 0) != 0) {}
    int value = nvshmem_int_g(data, 0);
    nvshmem_int_p(data, value + 21, 0);
    atomicMax(seen, value + 21);
    if (quiets) nvshmem_quiet();
    nvshmem_uint64_atomic_set(flag, 0, 0);
}

// A release of the flag, and then another strong store to it, which tells what the release has told; or to another word, which does not.
extern "C" __global__ void stores_again(int *data, uint64_t *flag, int *seen, int elsewhere) {
    unsigned *word = (unsigned *)flag;
    if (nvshmem_my_pe() == 0) {
        *(int *)nvshmem_ptr(data, 1) = 42;
        unsigned *theirs = (unsigned *)nvshmem_ptr(word, 1);
        asm volatile("st.release.sys.global.u32 [%0], 1;" ::"l"(theirs + elsewhere) : "memory");
        asm volatile("st.relaxed.sys.global.u32 [%0], 2;" ::"l"(theirs) : "memory");
    } else {
        unsigned found;
        do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(found) : "l"(word) : "memory");
        while (found != 2);
        *seen = *data;
    }
}

// Each PE sets its byte, and looks at both in one word.
extern "C" __global__ void bytes_in_a_word(int *data, uint64_t *flag, int *seen) {
    for (int pe = 0; pe < 2; pe++) ((volatile unsigned char *)nvshmem_ptr(flag, pe))[nvshmem_my_pe()] = 255;
    while (*(volatile unsigned short *)flag != 0xffff) {}
    *seen = 1;
}

// Thread 1 tells, hears, and meets the others; then thread 0 reads at the other PE, and nobody tells of that before the next round.
extern "C" __global__ void told_in_each_round(int *data, uint64_t *flag, int *seen, int rounds) {
    const int other = 1 - nvshmem_my_pe();
    for (int round = 1; round <= rounds; round++) {
        if (threadIdx.x == 0) *data = round;
        __syncthreads();
        if (threadIdx.x == 1) {
            asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"((unsigned *)nvshmem_ptr(flag, other) + round % 2), "r"(round) : "memory");
            int found;
            do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(found) : "l"((unsigned *)flag + round % 2) : "memory");
            while (found < round);
        }
        __syncthreads();
        if (threadIdx.x == 0) *seen = *(int *)nvshmem_ptr(data, other);
        __syncthreads();
    }
}
