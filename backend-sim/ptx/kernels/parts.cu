// Loops that look at a part of a word, as libraries write them, or give up. PE 1 is told by PE 0, and then takes its data.
#include <nvshmem.h>

template <typename T>
__device__ T acquire(const T *from) {
    T found;
    if constexpr (sizeof(T) == 8) {
        asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(found) : "l"(from) : "memory");
    } else {
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(found) : "l"(from) : "memory");
    }
    return found;
}

template <typename T>
__device__ void release(T *to, T value) {
    if constexpr (sizeof(T) == 8) {
        asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
    } else {
        asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
    }
}

// PE 0 tells the values one after the other, the last of which means that the data is there.
template <typename T, typename Waits>
__device__ void tells(int *data, T *flag, T first, T last, int *seen, Waits waits) {
    if (nvshmem_my_pe() == 0) {
        T *to = (T *)nvshmem_ptr(flag, 1);
        *(int *)nvshmem_ptr(data, 1) = 7;
        if (first != 0) release(to, first);
        release(to, last);
    } else {
        waits();
        *seen = *data;
    }
}

// As NCCL's barriers do.
extern "C" __global__ void of_an_epoch(int *data, unsigned *flag, int *seen, unsigned epoch) {
    tells(data, flag, 0u, epoch, seen, [=] { while (acquire(flag) - epoch > 0x7fffffff) {} });
}

extern "C" __global__ void of_a_bit(int *data, unsigned *flag, int *seen, unsigned odd) {
    tells(data, flag, 2u, odd, seen, [=] { while (!(acquire(flag) & 1)) {} });
}

// As MSCCL++'s packets have it: data and flag in one word.
extern "C" __global__ void of_a_packet(int *data, unsigned long long *flag, int *seen, unsigned epoch) {
    const unsigned long long packet = (unsigned long long)epoch << 32 | 5;
    tells(data, flag, 0ull, packet, seen, [=] { while ((unsigned)(acquire(flag) >> 32) != epoch) {} });
}

// As cooperative groups do, whose barriers turn the highest bit over.
extern "C" __global__ void of_the_highest_bit(int *data, unsigned *flag, int *seen, unsigned old) {
    tells(data, flag, 1u, 0x80000001u, seen, [=] { while (((acquire(flag) ^ old) & 0x80000000) == 0) {} });
}

// As DeepEP's waits do.
extern "C" __global__ void for_a_time(int *data, unsigned *flag, int *seen, unsigned epoch) {
    tells(data, flag, 0u, epoch, seen, [=] {
        const long long start = clock64();
        while (acquire(flag) != epoch && clock64() - start < 200000000000) {}
    });
}

// As MSCCL++'s waits do.
extern "C" __global__ void so_often(int *data, unsigned *flag, int *seen, unsigned epoch) {
    tells(data, flag, 0u, epoch, seen, [=] {
        long long looks = 0;
        while (acquire(flag) != epoch) assert(looks++ != 10000000);
    });
}

// Numbers as a network device has them: their bytes the other way round.
extern "C" __global__ void of_swapped_bytes(int *data, unsigned *flag, int *seen, unsigned number) {
    tells(data, flag, 0u, __byte_perm(number, 0, 0x0123), seen, [=] { while (__byte_perm(acquire(flag), 0, 0x0123) != number) {} });
}
