// Payloads that say for themselves that they have come: no element is the sentinel that lay there before, as in the Lamport-style all-reduces of
// TensorRT-LLM and FlashInfer.
#include <nvshmem.h>

#define ALL float *slots, float *out

__device__ float4 load(const float *from) {
    float4 p;
    asm volatile("ld.volatile.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(p.x), "=f"(p.y), "=f"(p.z), "=f"(p.w) : "l"(from) : "memory");
    return p;
}

__device__ void store(float *to, float4 p) {
    asm volatile("st.volatile.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(p.x), "f"(p.y), "f"(p.z), "f"(p.w) : "memory");
}

// Each PE sends four numbers to itself and to the next PE, waits for both packets, whose slots were filled with a sentinel, and adds them.
template <typename IsMissing>
__device__ void packets(ALL, IsMissing is_missing) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), at = 4 * threadIdx.x;
    const float mine = me + 1;
    store(slots + at, make_float4(mine, 0, -2, 4));
    store((float *)nvshmem_ptr(slots, (me + 1) % n) + 64 + at, make_float4(mine, 20, 30, 40));
    float4 got[2];
    bool done;
    do {
        done = true;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            got[i] = load(slots + 64 * i + at);
            done &= !(is_missing(got[i].x) || is_missing(got[i].y) || is_missing(got[i].z) || is_missing(got[i].w));
        }
    } while (!done);
    out[threadIdx.x] = got[0].x + got[0].y + got[0].z + got[0].w + got[1].y + got[1].z + got[1].w;
}

// The sentinel is -0.0, by its bits.
extern "C" __global__ void minus_zero_by_bits(ALL) {
    packets(slots, out, [](float x) { return __float_as_int(x) == 0x80000000; });
}

// The same, by a comparison with zero and a look at the sign.
extern "C" __global__ void minus_zero_by_sign(ALL) {
    packets(slots, out, [](float x) { return x == 0.0f && signbit(x); });
}

// The sentinel is a number, which is compared as one.
extern "C" __global__ void magic_number(ALL) {
    packets(slots, out, [](float x) { return x == -12345.0f; });
}

// Zero of either sign is missing: what is 0 never comes.
extern "C" __global__ void zero_of_either_sign(ALL) {
    packets(slots, out, [](float x) { return x == -0.0f; });
}

// No number equals what is none: the wait is over at once.
extern "C" __global__ void not_a_number(ALL) {
    packets(slots, out, [](float x) { return x == __int_as_float(0x7fc00000); });
}

// Packets of four numbers of 16 bits, which are widened before they are compared.
__device__ void load(const unsigned short *from, unsigned short (&p)[4]) {
    asm volatile("ld.volatile.global.v4.u16 {%0, %1, %2, %3}, [%4];" : "=h"(p[0]), "=h"(p[1]), "=h"(p[2]), "=h"(p[3]) : "l"(from) : "memory");
}

__device__ void store(unsigned short *to, const unsigned short (&p)[4]) {
    asm volatile("st.volatile.global.v4.u16 [%0], {%1, %2, %3, %4};" ::"l"(to), "h"(p[0]), "h"(p[1]), "h"(p[2]), "h"(p[3]) : "memory");
}

__device__ float widen_half(unsigned short bits) {
    float number;
    asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(bits));
    return number;
}

__device__ float widen_bfloat(unsigned short bits) {
    float number;
    asm("cvt.f32.bf16 %0, %1;" : "=f"(number) : "h"(bits));
    return number;
}

template <typename Widen, typename IsMissing>
__device__ void short_packets(ALL, const unsigned short (&sent)[4], Widen widen, IsMissing is_missing) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), at = 4 * threadIdx.x;
    unsigned short *words = (unsigned short *)slots, got[4];
    store((unsigned short *)nvshmem_ptr(words, (me + 1) % n) + at, sent);
    bool done;
    do {
        load(words + at, got);
        done = !(is_missing(widen(got[0])) || is_missing(widen(got[1])) || is_missing(widen(got[2])) || is_missing(widen(got[3])));
    } while (!done);
    out[threadIdx.x] = widen(got[0]) + widen(got[1]) + widen(got[2]) + widen(got[3]);
}

// 1, 20, 30 and 41, and a sentinel of -0.0.
extern "C" __global__ void halves(ALL) {
    short_packets(slots, out, {0x3c00, 0x4d00, 0x4f80, 0x5120}, widen_half, [](float x) { return x == 0.0f && signbit(x); });
}

extern "C" __global__ void bfloats(ALL) {
    short_packets(slots, out, {0x3f80, 0x41a0, 0x41f0, 0x4224}, widen_bfloat, [](float x) { return x == 0.0f && signbit(x); });
}

// What is compared is no number of 16 bits, so nothing is missing.
extern "C" __global__ void halves_that_nothing_equals(ALL) {
    short_packets(slots, out, {0x3c00, 0x4d00, 0x4f80, 0x5120}, widen_half, [](float x) { return x == -0.00000001f; });
}
