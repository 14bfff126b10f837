// Polls that look now and then at a word by which all are told to give up, as those of NCCL: with one look of so many.
#include <nvshmem.h>

#define ALL unsigned *flags, unsigned *aborts, unsigned *out, unsigned most

__device__ unsigned load(const unsigned *from) {
    unsigned found;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(found) : "l"(from) : "memory");
    return found;
}

__device__ void store(unsigned *to, unsigned value) { asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory"); }

__device__ unsigned *next(unsigned *word) { return (unsigned *)nvshmem_ptr(word, (nvshmem_my_pe() + 1) % nvshmem_n_pes()); }

__device__ bool is_told(const unsigned *aborts, unsigned &looks, unsigned most) {
    if (++looks < most) return false;
    looks = 0;
    return load(aborts) != 0;
}

// Waits for a round of a flag. False: it was told to give up.
__device__ bool wait(const unsigned *flag, unsigned round, const unsigned *aborts, unsigned most) {
    unsigned looks = 0;
    while (load(flag) < round) {
        if (is_told(aborts, looks, most)) return false;
    }
    return true;
}

// As NCCL's functions for kernels wait.
extern "C" __global__ void rounds(ALL) {
#pragma unroll 1
    for (unsigned round = 1; round <= 3; round++) {
        store(next(flags), round);
        if (!wait(flags, round, aborts, most)) return;
        out[0] = round;
        store(next(flags) + 1, round);
        if (!wait(flags + 1, round, aborts, most)) return;
    }
}

// As NCCL's collectives wait for who is ready to receive: whoever is told tells its block.
extern "C" __global__ void tells_its_block(ALL) {
    __shared__ unsigned aborted;
    aborted = 0;
    for (unsigned round = 1; round <= 2; round++) {
        store(next(flags), round);
        unsigned looks = 0;
        while (load(flags) < round) {
            if (looks++ == most) {
                if (load(aborts)) {
                    aborted = 1;
                    break;
                }
                looks = 0;
            }
        }
        out[0] = aborted ? 77 : round;
    }
}

// PE 0 sends the flag, and tells PE 1 to give up.
extern "C" __global__ void told(ALL) {
    if (nvshmem_my_pe() == 0) {
        store(next(flags), 1);
        store(next(aborts), 1);
    } else if (nvshmem_my_pe() == 1) {
        out[0] = wait(flags, 1, aborts, most) ? 1 : 77;
    }
}

// PE 0 only tells it to give up.
extern "C" __global__ void told_only(ALL) {
    if (nvshmem_my_pe() == 0) return store(next(aborts), 1);
    if (nvshmem_my_pe() == 1) out[0] = wait(flags, 1, aborts, most) ? 1 : 77;
}

// It gives up after so many looks, whatever it is told.
extern "C" __global__ void loses_patience(ALL) {
    if (nvshmem_my_pe() == 0) return store(next(flags), 1);
    if (nvshmem_my_pe() != 1) return;
    unsigned looks = 0, seen = 1;
    while (load(flags) == 0) {
        if (++looks < most) continue;
        looks = load(aborts);
        seen = 77;
        break;
    }
    out[0] = seen + looks / 1000;
}

// It tells how often it has looked since.
extern "C" __global__ void tells_its_looks(ALL) {
    if (nvshmem_my_pe() == 0) return store(next(flags), 1);
    if (nvshmem_my_pe() != 1) return;
    unsigned looks = 0;
    while (load(flags) == 0) {
        if (is_told(aborts, looks, most)) return;
    }
    out[0] = looks;
}
