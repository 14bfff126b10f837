// Loops around NVSHMEM's atomics, and around several words: each waits for others.
#include <nvshmem.h>
#include <nvshmemx.h>

// PE 1 polls its flag by a fetch, and then PE 0's.
extern "C" __global__ void poll_by_fetch(int *data, uint64_t *flag, int *seen) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_p(data, 42, 1);
        nvshmem_quiet();
        nvshmem_uint64_atomic_set(flag, 1, 1);
        nvshmem_uint64_atomic_add(flag, 1, 0);
    } else {
        while (nvshmem_uint64_atomic_fetch(flag, 1) != 1) {}
        while (nvshmem_uint64_atomic_fetch(flag, 0) != 1) nvshmem_quiet();
        *seen = *data;
    }
}

// PE 1 asks whether its flag is set.
extern "C" __global__ void poll_by_test(int *data, uint64_t *flag, int *seen) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_p(data, 42, 1);
        nvshmem_quiet();
        nvshmem_uint64_atomic_set(flag, 1, 1);
    } else {
        while (!nvshmem_uint64_test(flag, NVSHMEM_CMP_EQ, 1)) {}
        *seen = *data;
    }
}

// PE 0 sets one of two flags; PE 1 polls both.
extern "C" __global__ void either(uint64_t *flags, int which) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_uint64_atomic_set(flags + which, 1, 1);
    } else {
        while (nvshmem_uint64_atomic_fetch(flags, 1) == 0 && nvshmem_uint64_atomic_fetch(flags + 1, 1) == 0) {}
    }
}

// The same by loads.
extern "C" __global__ void either_by_loads(uint64_t *flags, int which) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_uint64_atomic_set(flags + which, 1, 1);
    } else {
        volatile uint64_t *mine = flags;
        while (mine[0] == 0 && mine[1] == 0) {}
    }
}

// PE 0 sends 1, then 2. PE 1 waits for 1 or more, and looks at what it found, or does not.
__device__ void send_one_then_two(uint64_t *flag) {
    nvshmemx_signal_op(flag, 1, NVSHMEM_SIGNAL_SET, 1);
    nvshmem_fence();
    nvshmemx_signal_op(flag, 2, NVSHMEM_SIGNAL_SET, 1);
}
extern "C" __global__ void wait_and_look(uint64_t *flag, int *seen) {
    if (nvshmem_my_pe() == 0) {
        send_one_then_two(flag);
    } else {
        *seen = (int)nvshmem_signal_wait_until(flag, NVSHMEM_CMP_GE, 1);
    }
}
extern "C" __global__ void wait_only(uint64_t *flag, int *seen) {
    if (nvshmem_my_pe() == 0) {
        send_one_then_two(flag);
    } else {
        nvshmem_signal_wait_until(flag, NVSHMEM_CMP_GE, 1);
        *seen = 1;
    }
}

// PE 0 changes PE 1's word by atomics of its own, to 1 and to 2; PE 1 waits for it, and looks at what it found, or asks for 1.
__device__ void store_one_then_two(uint64_t *flag) {
    unsigned long long *theirs = (unsigned long long *)nvshmem_ptr(flag, 1);
    atomicExch_system(theirs, 1ull);
    atomicExch_system(theirs, 2ull);
}
extern "C" __global__ void atomics_and_look(uint64_t *flag, int *seen) {
    if (nvshmem_my_pe() == 0) {
        store_one_then_two(flag);
    } else {
        *seen = (int)nvshmem_signal_wait_until(flag, NVSHMEM_CMP_GE, 1);
    }
}
extern "C" __global__ void atomics_pass_by(uint64_t *flag, int *seen) {
    if (nvshmem_my_pe() == 0) {
        store_one_then_two(flag);
    } else {
        nvshmem_uint64_wait_until(flag, NVSHMEM_CMP_EQ, 1);
        *seen = 1;
    }
}

// Words of two sizes at one address: the waiter of PE 1 looks at both.
extern "C" __global__ void two_sizes(uint64_t *flag, int *seen) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_uint32_atomic_add((uint32_t *)flag, 1, 1);
        nvshmem_uint64_atomic_add(flag, 1ull << 32, 1);
    } else {
        nvshmem_uint64_wait_until(flag, NVSHMEM_CMP_EQ, 1ull << 32);
        *seen = 1;
    }
}

// PE 0 stores two words, each with its number in the flag. PE 1 polls until there are some, and reads as many.
extern "C" __global__ void read_as_many(uint64_t *data, uint64_t *flag, int *seen) {
    if (nvshmem_my_pe() == 0) {
        unsigned long long *theirs = (unsigned long long *)nvshmem_ptr(data, 1), *sent = (unsigned long long *)nvshmem_ptr(flag, 1);
        for (unsigned long long i = 0; i < 2; i++) {
            theirs[i] = 10 + i;
            asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(sent), "l"(i + 1) : "memory");
        }
    } else {
        unsigned long long count;
        do asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(count) : "l"(flag) : "memory");
        while (count == 0);
        for (unsigned long long i = 0; i < count; i++) *seen += (int)data[i];
    }
}

// PE 0 sets two flags of PE 1, which are in its first two words, or only the first one. PE 1 tests them until both are set.
template <typename Tested>
__device__ void set_flags(uint64_t *flags, int count, Tested tested) {
    if (nvshmem_my_pe() == 0) {
        for (int i = 0; i < count; i++) nvshmemx_signal_op(flags + i, 1, NVSHMEM_SIGNAL_SET, 1);
        nvshmem_quiet();
    } else {
        while (!tested());
    }
}
extern "C" __global__ void test_one_and_one(uint64_t *flags, int count) {
    set_flags(flags, count, [=] { return nvshmem_uint64_test(flags, NVSHMEM_CMP_EQ, 1) && nvshmem_uint64_test(flags + 1, NVSHMEM_CMP_EQ, 1); });
}
extern "C" __global__ void test_all_of_two(uint64_t *flags, int count) {
    set_flags(flags, count, [=] { return nvshmem_uint64_test_all(flags, 2, NULL, NVSHMEM_CMP_EQ, 1); });
}
extern "C" __global__ void test_some_of_two(uint64_t *flags, int count) {
    set_flags(flags, count, [=] {
        size_t which[2];
        return nvshmem_uint64_test_some(flags, 2, which, NULL, NVSHMEM_CMP_EQ, 1) == 2;
    });
}
