// Packets as low-latency protocols send them: data and a flag for it in one access, so that nothing else has to order the two. That is right where a GPU
// accesses eight bytes of a vector at once, as over NVLink. By PTX's text it accesses the elements in any order.
#include "kernel.h"

#define PEER(TYPE, ADDRESS) ((TYPE *)nvshmem_ptr(ADDRESS, NEXT))

__device__ void store(void *at, unsigned a, unsigned b) {
    asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(at), "r"(a), "r"(b) : "memory");
}
__device__ void store(void *at, unsigned a, unsigned b, unsigned c, unsigned d) {
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
__device__ uint2 load2(const void *at) {
    uint2 all;
    asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];" : "=r"(all.x), "=r"(all.y) : "l"(at) : "memory");
    return all;
}
__device__ uint4 load4(const void *at) {
    uint4 all;
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(all.x), "=r"(all.y), "=r"(all.z), "=r"(all.w)
                 : "l"(at)
                 : "memory");
    return all;
}

// Each PE sends one to the next.
KERNEL(packet_of_two) {
    store(PEER(void, words), in[3], 1);
    uint2 packet;
    do packet = load2(words);
    while (packet.y != 1);
    out[0] = packet.x;
}
// Two packets by one access: each word of eight bytes has its own flag.
KERNEL(packets_of_four) {
    store(PEER(void, words), in[3], 1, in[4], 1);
    uint4 packet;
    do packet = load4(words);
    while (packet.y != 1 || packet.w != 1);
    out[0] = packet.x;
    out[1] = packet.z;
}
// One flag for all of sixteen bytes: that of the one word says nothing of the other.
KERNEL(packet_with_one_flag) {
    store(PEER(void, words), in[3], in[4], in[5], 1);
    uint4 packet;
    do packet = load4(words);
    while (packet.w != 1);
    out[0] = packet.x;
    out[1] = packet.z;
}
// Four elements of two bytes, of which the last is the flag.
KERNEL(packet_of_halves) {
    asm volatile("st.volatile.global.v4.u16 [%0], {%1, %2, %3, %4};" ::"l"(PEER(void, words)), "h"((short)in[1]), "h"((short)in[2]),
                 "h"((short)in[3]), "h"((short)1)
                 : "memory");
    short a, b, c, flag;
    do asm volatile("ld.volatile.global.v4.u16 {%0, %1, %2, %3}, [%4];" : "=h"(a), "=h"(b), "=h"(c), "=h"(flag) : "l"(words) : "memory");
    while (flag != 1);
    out[0] = a;
    out[1] = b;
    out[2] = c;
}
// The flag is the number of the round, and each round has a place of its own, which is used again two rounds later: whoever sends has heard of that.
KERNEL(packets_in_rounds) {
    for (unsigned round = 1; round <= 3; round++) {
        uint64_t *slot = words + round % 2;
        store(PEER(void, slot), in[round], round);
        uint2 packet;
        do packet = load2(slot);
        while (packet.y != round);
        out[round] = packet.x;
    }
}
// Two stores are no packet, although they are looked at by one load.
KERNEL(packet_in_two_stores) {
    volatile unsigned *to = PEER(volatile unsigned, words);
    to[1] = 1;
    to[0] = in[3];
    uint2 packet;
    do packet = load2(words);
    while (packet.y != 1);
    out[0] = packet.x;
}
// One store, of which the reader looks at the data first, and then at the flag.
KERNEL(packet_in_two_loads) {
    store(PEER(void, words), in[3], 1);
    const volatile unsigned *from = (const volatile unsigned *)words;
    unsigned value;
    do value = from[0];
    while (from[1] != 1);
    out[0] = value;
}
