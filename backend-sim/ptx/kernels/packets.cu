// Data and its flag in one access of a vector, as low-latency protocols send them.
#include <nvshmem.h>

__device__ void trap_unless(bool holds) {
    if (!holds) asm volatile("trap;");
}

// Each thread sends a packet to the thread of its number on the next PE, which waits for it.
extern "C" __global__ void packet_of_two(unsigned *slots) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), from = (me + n - 1) % n;
    unsigned *mine = slots + 4 * threadIdx.x, *theirs = (unsigned *)nvshmem_ptr(mine, (me + 1) % n);
    unsigned a, b;
    asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(theirs), "r"(me + 5), "r"(1) : "memory");
    do asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(mine) : "memory");
    while (b != 1);
    trap_unless(a == from + 5);
}

// Two packets in one access: the second has a flag of its own, or not.
template <bool TWO_FLAGS>
__device__ void packets(unsigned *slots) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), from = (me + n - 1) % n;
    unsigned *mine = slots + 4 * threadIdx.x, *theirs = (unsigned *)nvshmem_ptr(mine, (me + 1) % n);
    unsigned a, b, c, d;
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(theirs), "r"(me + 5), "r"(1), "r"(me + 6), "r"(1) : "memory");
    do asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(mine) : "memory");
    while (b != 1 || (TWO_FLAGS && d != 1));
    trap_unless(a == from + 5);
    trap_unless(c == from + 6);
}

extern "C" __global__ void two_packets(unsigned *slots) { packets<true>(slots); }
extern "C" __global__ void two_packets_with_one_flag(unsigned *slots) { packets<false>(slots); }

// Each element says by itself that it has come: it is not what was there before.
extern "C" __global__ void sentinels(unsigned *slots) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), from = (me + n - 1) % n;
    unsigned *mine = slots + 4 * threadIdx.x, *theirs = (unsigned *)nvshmem_ptr(mine, (me + 1) % n);
    unsigned a, b;
    asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(theirs), "r"(me + 5), "r"(me + 6) : "memory");
    do asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(mine) : "memory");
    while (a == 0 || b == 0);
    trap_unless(a == from + 5 && b == from + 6);
}

// A packet from one thread of a block to another, through shared memory.
extern "C" __global__ void packet_in_shared(unsigned *) {
    __shared__ uint2 slot;
    if (threadIdx.x == 0) slot = make_uint2(0, 0);
    __syncthreads();
    const unsigned at = (unsigned)__cvta_generic_to_shared(&slot);
    if (threadIdx.x == 0) {
        asm volatile("st.volatile.shared.v2.u32 [%0], {%1, %2};" ::"r"(at), "r"(7), "r"(1) : "memory");
    } else {
        unsigned a, b;
        do asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(at) : "memory");
        while (b != 1);
        trap_unless(a == 7);
    }
}

// All threads of a PE add to both halves of a word, each by a load and a store of both: some additions are lost, but never one of two.
extern "C" __global__ void pairs(unsigned *slots) {
    unsigned a, b;
    asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(slots) : "memory");
    trap_unless(a == b);
    asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(slots), "r"(a + 1), "r"(b + 1) : "memory");
}

// As `sentinels`, of four elements, which are compared one after the other: the first that is not there leads back.
extern "C" __global__ void sentinels_in_turn(unsigned *slots) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), from = (me + n - 1) % n;
    unsigned *mine = slots + 4 * threadIdx.x, *theirs = (unsigned *)nvshmem_ptr(mine, (me + 1) % n);
    unsigned a, b, c, d;
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(theirs), "r"(me + 5), "r"(me + 6), "r"(me + 7), "r"(me + 8) : "memory");
    asm volatile(
        "{\n.reg .pred %%none;\n"
        "again: ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];\n"
        "setp.eq.u32 %%none, %0, 0;\n@%%none bra again;\n"
        "setp.eq.u32 %%none, %1, 0;\n@%%none bra again;\n"
        "setp.eq.u32 %%none, %2, 0;\n@%%none bra again;\n"
        "setp.eq.u32 %%none, %3, 0;\n@%%none bra again;\n}"
        : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
        : "l"(mine)
        : "memory");
    trap_unless(a == from + 5 && b == from + 6 && c == from + 7 && d == from + 8);
}

// The same, but whoever finds the first element missing counts that: its rounds are no waits, and are seen.
extern "C" __global__ void sentinels_counted(unsigned *slots) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    unsigned *mine = slots + 4 * threadIdx.x, *theirs = (unsigned *)nvshmem_ptr(mine, (me + 1) % n);
    unsigned a, b, rounds = 0;
    asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(theirs), "r"(me + 5), "r"(me + 6) : "memory");
    asm volatile(
        "{\n.reg .pred %%none;\n"
        "again: ld.volatile.global.v2.u32 {%0, %1}, [%3];\n"
        "setp.eq.u32 %%none, %0, 0;\n@%%none add.u32 %2, %2, 1;\n@%%none bra again;\n"
        "setp.eq.u32 %%none, %1, 0;\n@%%none bra again;\n}"
        : "=r"(a), "=r"(b), "+r"(rounds)
        : "l"(mine)
        : "memory");
    trap_unless(rounds == 0);
}

// A plain vector is torn under every profile: it races.
extern "C" __global__ void plain_pair(unsigned *slots) {
    unsigned a, b;
    if (threadIdx.x == 0) {
        asm volatile("st.global.v2.u32 [%0], {1, 1};" ::"l"(slots) : "memory");
    } else {
        asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(slots) : "memory");
        trap_unless(a == b);
    }
}

// Two slots around a ring, and nobody says that a slot was read: the packet that comes next may be there before somebody has looked for this one, who then waits
// for ever.
extern "C" __global__ void packets_without_credits(unsigned *slots) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    unsigned *theirs = (unsigned *)nvshmem_ptr(slots, (me + 1) % n);
    for (unsigned i = 0; i < 3; i++) {
        unsigned data, flag;
        asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(theirs + 4 * (i % 2)), "r"(i), "r"(i + 1) : "memory");
        do {
            asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];" : "=r"(data), "=r"(flag) : "l"(slots + 4 * (i % 2)) : "memory");
        } while (flag != i + 1);
    }
}
