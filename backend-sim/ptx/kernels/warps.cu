// Warps of a block that talk in shared memory: their first threads wait in loops for words there.
#include <nvshmem.h>

__device__ unsigned in_block(int *word) { return (unsigned)__cvta_generic_to_shared(word); }

__device__ int load(int *word) {
    int found;
    asm volatile("ld.acquire.cta.shared::cta.s32 %0, [%1];" : "=r"(found) : "r"(in_block(word)) : "memory");
    return found;
}

__device__ int load_relaxed(int *word) {
    int found;
    asm volatile("ld.relaxed.cta.shared::cta.s32 %0, [%1];" : "=r"(found) : "r"(in_block(word)) : "memory");
    return found;
}

__device__ void store(int *word, int value) {
    asm volatile("st.release.cta.shared::cta.s32 [%0], %1;" ::"r"(in_block(word)), "r"(value) : "memory");
}

__device__ void store_relaxed(int *word, int value) {
    asm volatile("st.relaxed.cta.shared::cta.s32 [%0], %1;" ::"r"(in_block(word)), "r"(value) : "memory");
}

// Numbers of a block that no compiler foresees.
struct Words {
    int flag[8];
    int value[8];
};

// Calls `warp` with the number of each warp, in its first thread, once the words are 0.
template <typename Warp>
__device__ void warps(Warp warp) {
    __shared__ Words words;
    if (threadIdx.x < 8) words.flag[threadIdx.x] = words.value[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) warp(words, threadIdx.x / 32, blockDim.x / 32);
}

// Each warp goes on with what the one before it has written.
extern "C" __global__ void chain(int *flags, int *data, int *seen) {
    warps([=](Words &words, int warp, int all) {
        if (warp > 0)
            while (load(&words.flag[warp - 1]) != 1);
        words.value[warp] = (warp > 0 ? words.value[warp - 1] : data[0]) + 1;
        store(&words.flag[warp], 1);
        if (warp == all - 1) seen[0] = words.value[warp];
    });
}

// Each warp waits until all have counted themselves.
extern "C" __global__ void all_have_come(int *flags, int *data, int *seen) {
    warps([=](Words &words, int warp, int all) {
        words.value[warp] = 1;
        __threadfence_block();
        atomicAdd_block(&words.flag[0], 1);
        while (load(&words.flag[0]) < all);
        int sum = 0;
        for (int other = 0; other < all; other++) sum += words.value[other];
        seen[warp] = sum;
    });
}

// One warp puts six numbers into a queue of three, when one of them is free, and the other takes them out.
extern "C" __global__ void queue(int *flags, int *data, int *seen) {
    warps([=](Words &words, int warp, int) {
        const int most = 3;
        int *head = &words.flag[0], *tail = &words.flag[1];
        if (warp == 0)
            for (int put = 0; put < 6; put++) {
                while (most - (put - load(head)) < 1);
                words.value[put % most] = put + 1;
                store(tail, put + 1);
            }
        if (warp == 1) {
            int sum = 0;
            for (int taken = 0; taken < 6; taken++) {
                while (load(tail) <= taken);
                sum += words.value[taken % most];
                store(head, taken + 1);
            }
            seen[0] = sum;
        }
    });
}

// Two slots, each with a flag that says whether it is full: it goes up and down.
extern "C" __global__ void two_slots(int *flags, int *data, int *seen) {
    warps([=](Words &words, int warp, int) {
        int sum = 0;
        for (int item = 0; item < 4 && warp < 2; item++) {
            while (load(&words.flag[item % 2]) != warp);
            if (warp == 0) words.value[item % 2] = item + 1;
            if (warp == 1) sum += words.value[item % 2];
            store(&words.flag[item % 2], 1 - warp);
        }
        if (warp == 1) seen[0] = sum;
    });
}

// Each warp adds to a number under a lock.
extern "C" __global__ void under_a_lock(int *flags, int *data, int *seen) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    warps([=](Words &words, int warp, int) {
        while (atomicCAS_block(&words.flag[0], 0, 1) != 0);
        __threadfence_block();
        sum += 1;
        __threadfence_block();
        atomicExch_block(&words.flag[0], 0);
    });
    __syncthreads();
    if (threadIdx.x == 0) seen[0] = sum;
}

// One warp waits for another PE, and tells a second one, which reads what has come.
extern "C" __global__ void relay(int *flags, int *data, int *seen) {
    const int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
    warps([=](Words &words, int warp, int) {
        if (warp == 2) {
            nvshmem_int_p(data, 7, next);
            nvshmem_fence();
            nvshmem_int_atomic_set(flags, 1, next);
        }
        if (warp == 0) {
            nvshmem_int_wait_until(flags, NVSHMEM_CMP_EQ, 1);
            store(&words.flag[0], 1);
        }
        if (warp == 1) {
            while (load(&words.flag[0]) == 0);
            seen[0] = data[0];
        }
    });
}

// Each PE looks at the flag of the next one there, and gets its number.
extern "C" __global__ void pull(int *flags, int *data, int *seen) {
    if (threadIdx.x > 0) return;
    const int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
    data[0] = 3;
    asm volatile("st.release.sys.global.s32 [%0], 1;" ::"l"(flags) : "memory");
    const int *flag = (const int *)nvshmem_ptr(flags, next);
    int found;
    do {
        asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(found) : "l"(flag) : "memory");
    } while (found != 1);
    seen[0] = *(const int *)nvshmem_ptr(data, next);
}

// Nothing says that the flag is 0 before it is polled.
extern "C" __global__ void forgets_a_barrier(int *flags, int *data, int *seen) {
    __shared__ int flag;
    if (threadIdx.x == 0) {
        flag = 0;
        store(&flag, 1);
    }
    if (threadIdx.x == 32) {
        while (load(&flag) == 0);
        seen[0] = 1;
    }
}

// Nobody stores what the second warp waits for.
extern "C" __global__ void waits_for_another(int *flags, int *data, int *seen) {
    warps([=](Words &words, int warp, int) {
        if (warp == 0) store(&words.flag[0], 1);
        if (warp == 1)
            while (load(&words.flag[0]) != 2);
    });
}

// The third warp waits for the first one only, and reads what the second one writes behind that. It comes so late that the second one has told it, too.
template <bool Shared>
__device__ void reads_too_much(int *data, int *seen) {
    warps([=](Words &words, int warp, int) {
        int *value = Shared ? &words.value[1] : &data[1];
        if (warp == 0) {
            words.value[0] = data[0];
            store(&words.flag[0], 1);
        }
        if (warp == 1) {
            while (load(&words.flag[0]) != 1);
            *value = data[0];
            store(&words.flag[0], 2);
            store_relaxed(&words.flag[1], 1);
        }
        if (warp == 2) {
            while (load_relaxed(&words.flag[1]) != 1);
            while (load(&words.flag[0]) < 1);
            seen[0] = words.value[0] + *value;
        }
    });
}

extern "C" __global__ void reads_too_much_in_shared(int *flags, int *data, int *seen) { reads_too_much<true>(data, seen); }

extern "C" __global__ void reads_too_much_in_global(int *flags, int *data, int *seen) { reads_too_much<false>(data, seen); }

// The first time, a flag is put up behind the value. The next time, it is up by a plain store: what it told before, it does not tell then.
extern "C" __global__ void tells_once(int *flags, int *data, int *seen) {
    __shared__ Words words;
    const int again = flags[0];
    if (threadIdx.x < 8) words.flag[threadIdx.x] = again, words.value[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        words.value[0] = data[0];
        if (!again) store(&words.flag[0], 1);
    }
    if (threadIdx.x == 32) {
        while (load(&words.flag[0]) != 1);
        seen[0] = words.value[0];
    }
    __syncthreads();
    if (threadIdx.x == 0) flags[0] = 1;
}
