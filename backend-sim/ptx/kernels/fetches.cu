// Loops around calls that only look at a word, beside the same loops around loads.
#include <nvshmem.h>
#include <nvshmemx.h>

enum { DATA, SEEN, OTHER }; // the words of data

// How a thread waits until a signal has come so far, or looks whether it has.
#define BY_WAIT [=](uint64_t round) { return nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, round) >= round; }
#define BY_LOAD [=](uint64_t round) { return *(volatile uint64_t *)signal >= round; }
#define BY_FETCH [=](uint64_t round) { return nvshmem_signal_fetch(signal) >= round; }
#define BY_TEST [=](uint64_t round) { return nvshmem_uint64_test(signal, NVSHMEM_CMP_GE, round); }
#define BY_TEST_BELOW [=](uint64_t round) { return !nvshmem_uint64_test(signal, NVSHMEM_CMP_LT, round); }
#define BY_TEST_OF_ALL [=](uint64_t round) { return nvshmem_uint64_test_all(signal, 1, NULL, NVSHMEM_CMP_GE, round); }

// Each PE gives the next one the round's number, and a signal behind it, and takes what the one before gives.
template <bool fenced, typename Look> __device__ void around(int *data, uint64_t *signal, int rounds, Look has_come) {
    const int me = nvshmem_my_pe(), next = (me + 1) % nvshmem_n_pes();
    int sum = 0;
    for (int round = 1; round <= rounds; ++round) {
        if (me == 0) {
            nvshmem_int_p(data + DATA, round, next);
            if (fenced) nvshmem_fence();
            nvshmemx_signal_op(signal, round, NVSHMEM_SIGNAL_SET, next);
        }
        while (!has_come(round)) {}
        if (me != 0) {
            sum += data[DATA];
            nvshmem_int_p(data + DATA, round, next);
            if (fenced) nvshmem_fence();
            nvshmemx_signal_op(signal, round, NVSHMEM_SIGNAL_SET, next);
        }
    }
    data[SEEN] = sum;
}

#define AROUND(name, fenced, look) extern "C" __global__ void name(int *data, uint64_t *signal, int rounds) { around<fenced>(data, signal, rounds, look); }
AROUND(around_by_wait, true, BY_WAIT)
AROUND(around_by_fetch, true, BY_FETCH)
AROUND(around_by_test, true, BY_TEST)
AROUND(around_by_test_below, true, BY_TEST_BELOW)
AROUND(around_by_test_of_all, true, BY_TEST_OF_ALL)
AROUND(around_by_wait_without_fence, false, BY_WAIT)
AROUND(around_by_fetch_without_fence, false, BY_FETCH)
AROUND(around_by_test_without_fence, false, BY_TEST)

// PE 0 sets a signal of PE 1 twice, which waits for the first time and says what it has found.
template <typename Look> __device__ void found(int *data, uint64_t *signal, Look look) {
    if (nvshmem_my_pe() == 0) {
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1);
        nvshmem_fence();
        nvshmemx_signal_op(signal, 2, NVSHMEM_SIGNAL_SET, 1);
    } else {
        uint64_t value;
        while ((value = look()) == 0) {}
        data[SEEN] = value;
    }
}

extern "C" __global__ void found_by_load(int *data, uint64_t *signal, int) { found(data, signal, [=] { return *(volatile uint64_t *)signal; }); }
extern "C" __global__ void found_by_fetch(int *data, uint64_t *signal, int) { found(data, signal, [=] { return nvshmem_signal_fetch(signal); }); }

// PE 1 waits for its first signal, and gives up when the second one says so, or when it has looked often enough.
template <typename Look, typename Stop> __device__ void unless_told(int *data, uint64_t *signal, int told, Look look, Stop stop) {
    if (nvshmem_my_pe() == 0) {
        nvshmemx_signal_op(signal + told, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        data[SEEN] = 1;
        while (!look(1)) {
            if (stop()) {
                data[SEEN] = 2;
                break;
            }
        }
    }
}

#define UNLESS(name, look, ...) \
    extern "C" __global__ void name(int *data, uint64_t *signal, int told) { unless_told(data, signal, told, look, __VA_ARGS__); }
UNLESS(load_unless_told_by_load, BY_LOAD, [=] { return *(volatile uint64_t *)(signal + 1) != 0; })
UNLESS(fetch_unless_told_by_load, BY_FETCH, [=] { return *(volatile uint64_t *)(signal + 1) != 0; })
UNLESS(fetch_unless_told_by_fetch, BY_FETCH, [=] { return nvshmem_signal_fetch(signal + 1) != 0; })
UNLESS(load_unless_told_by_fetch, BY_LOAD, [=] { return nvshmem_signal_fetch(signal + 1) != 0; })
UNLESS(test_unless_told_by_fetch, BY_TEST, [=] { return nvshmem_signal_fetch(signal + 1) != 0; })
UNLESS(test_unless_told_by_test, BY_TEST, [=] { return nvshmem_uint64_test(signal + 1, NVSHMEM_CMP_NE, 0); })
UNLESS(load_in_time, BY_LOAD, [=, left = told + 2]() mutable { return --left == 0; })
UNLESS(fetch_in_time, BY_FETCH, [=, left = told + 2]() mutable { return --left == 0; })
UNLESS(test_in_time, BY_TEST, [=, left = told + 2]() mutable { return --left == 0; })

// What is asked for is another number in each round.
extern "C" __global__ void test_of_more_and_more(int *data, uint64_t *signal, int) {
    if (nvshmem_my_pe() == 0) {
        nvshmemx_signal_op(signal, 2, NVSHMEM_SIGNAL_SET, 1);
    } else {
        uint64_t round = 4;
        while (!nvshmem_uint64_test(signal, NVSHMEM_CMP_EQ, round)) { round = round == 1 ? 1 : round - 1; }
        data[SEEN] = round;
    }
}

// Two signals come in either order, and both are waited for.
extern "C" __global__ void fetch_of_two(int *data, uint64_t *signal, int told) {
    if (nvshmem_my_pe() == 0) {
        nvshmemx_signal_op(signal + told, 1, NVSHMEM_SIGNAL_SET, 1);
        nvshmemx_signal_op(signal + 1 - told, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        while (nvshmem_signal_fetch(signal) == 0 || nvshmem_signal_fetch(signal + 1) == 0) {}
        data[SEEN] = 1;
    }
}

extern "C" __global__ void load_of_two(int *data, uint64_t *signal, int told) {
    volatile uint64_t *words = signal;
    if (nvshmem_my_pe() == 0) {
        nvshmemx_signal_op(signal + told, 1, NVSHMEM_SIGNAL_SET, 1);
        nvshmemx_signal_op(signal + 1 - told, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        while (words[0] == 0 || words[1] == 0) {}
        data[SEEN] = 1;
    }
}

// The word's own writer is a thread of the kernel, which stores plainly: that races with a look at it as a signal.
extern "C" __global__ void fetch_of_a_plain_word(int *data, uint64_t *signal, int) {
    if (threadIdx.x == 1) *signal = 1;
    else
        while (nvshmem_signal_fetch(signal) == 0) {}
}

// Nobody signals.
extern "C" __global__ void fetch_for_ever(int *data, uint64_t *signal, int) {
    while (nvshmem_signal_fetch(signal) < 3) {}
}

extern "C" __global__ void test_for_ever(int *data, uint64_t *signal, int) {
    while (!nvshmem_uint64_test(signal, NVSHMEM_CMP_EQ, 3)) {}
}

// The same by an atomic fetch of a PE's word.
#define BY_ATOMIC [=, pe = nvshmem_my_pe()](uint64_t round) { return nvshmem_uint64_atomic_fetch(signal, pe) >= round; }
#define BY_ATOMIC_OF_ME [=](uint64_t round) { return nvshmem_uint64_atomic_fetch(signal, nvshmem_my_pe()) >= round; }
AROUND(around_by_atomic, true, BY_ATOMIC)
AROUND(around_by_atomic_of_me, true, BY_ATOMIC_OF_ME)
AROUND(around_by_atomic_without_fence, false, BY_ATOMIC)
extern "C" __global__ void found_by_atomic(int *data, uint64_t *signal, int) { found(data, signal, [=, pe = nvshmem_my_pe()] { return nvshmem_uint64_atomic_fetch(signal, pe); }); }
UNLESS(atomic_unless_told_by_load, BY_ATOMIC, [=] { return *(volatile uint64_t *)(signal + 1) != 0; })
UNLESS(atomic_in_time, BY_ATOMIC, [=, left = told + 2]() mutable { return --left == 0; })

// Each PE says in its own memory what it has given to the next one, which looks there.
template <bool complete> __device__ void around_by_pull(int *data, uint64_t *signal, int rounds) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), next = (me + 1) % n, last = (me + n - 1) % n;
    int sum = 0;
#pragma unroll 1
    for (int round = 1; round <= rounds; ++round) {
        if (me != 0) {
            while (nvshmem_uint64_atomic_fetch(signal, last) < round) {}
            sum += data[DATA];
        }
        nvshmem_int_p(data + DATA, round, next);
        if (complete) nvshmem_quiet();
        nvshmemx_signal_op(signal, round, NVSHMEM_SIGNAL_SET, me);
        if (me == 0) {
            while (nvshmem_uint64_atomic_fetch(signal, last) < round) {}
            sum += data[DATA];
        }
    }
    data[SEEN] = sum;
}

extern "C" __global__ void around_by_pull(int *data, uint64_t *signal, int rounds) { around_by_pull<true>(data, signal, rounds); }
extern "C" __global__ void around_by_pull_without_quiet(int *data, uint64_t *signal, int rounds) { around_by_pull<false>(data, signal, rounds); }

// PE 1 puts a number to itself, and then looks for a flag by an atomic fetch. If a fence stands between them, the number has come before.
template <bool fenced> __device__ void behind_own_put(int *data, uint64_t *signal) {
    if (nvshmem_my_pe() == 0) {
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1);
    } else if (nvshmem_my_pe() == 1) {
        nvshmem_int_p(data + DATA, 7, 1);
        if (fenced) nvshmem_fence();
        while (nvshmem_uint64_atomic_fetch(signal, 1) == 0) {}
        data[SEEN] = data[DATA];
    }
}

extern "C" __global__ void atomic_behind_own_put(int *data, uint64_t *signal, int) { behind_own_put<true>(data, signal); }
extern "C" __global__ void atomic_beside_own_put(int *data, uint64_t *signal, int) { behind_own_put<false>(data, signal); }

// Thread 1 makes a quiet, and then signals: the fetches of thread 0 do not keep it waiting.
extern "C" __global__ void atomic_beside_quiet(int *data, uint64_t *signal, int) {
    if (nvshmem_my_pe() == 0) return;
    if (threadIdx.x == 1) {
        nvshmem_int_p(data + DATA, 7, 0);
        nvshmem_quiet();
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        while (nvshmem_uint64_atomic_fetch(signal, 1) == 0) {}
        data[SEEN] = 1;
    }
}

// One thread of PE 1 fences between two signals, the first to itself. The other may have issued its fetch before the fence, and see only what is sent behind it by another PE.
extern "C" __global__ void atomic_beside_fence(int *data, uint64_t *signal, int fences) {
    if (nvshmem_my_pe() == 0) {
        if (threadIdx.x == 1) return;
        while (nvshmem_signal_fetch(signal + 1) == 0) {}
        nvshmemx_signal_op(signal, 2, NVSHMEM_SIGNAL_SET, 1);
    } else if (threadIdx.x == fences) {
        nvshmemx_signal_op(signal + 1, 1, NVSHMEM_SIGNAL_SET, 1);
        nvshmem_fence();
        nvshmemx_signal_op(signal + 1, 1, NVSHMEM_SIGNAL_SET, 0);
    } else {
        while (nvshmem_uint64_atomic_fetch(signal, 1) == 0) {}
        data[SEEN] = 1 + nvshmem_signal_fetch(signal + 1);
    }
}

extern "C" __global__ void atomic_of_a_plain_word(int *data, uint64_t *signal, int) {
    if (threadIdx.x == 1) *signal = 1;
    else
        while (nvshmem_uint64_atomic_fetch(signal, 0) == 0) {}
}

extern "C" __global__ void atomic_for_ever(int *data, uint64_t *signal, int) {
    while (nvshmem_uint64_atomic_fetch(signal, 0) < 3) {}
}

// A number of 32 bits, as another one.
extern "C" __global__ void atomic_of_an_int(int *data, uint64_t *signal, int) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_atomic_set(data + DATA, -1, 1);
    } else {
        while (nvshmem_int_atomic_fetch(data + DATA, 1) >= 0) {}
        data[SEEN] = 1;
    }
}

// What counts its looks, and fails when they are over.
template <typename Look> __device__ void or_trap(int *data, uint64_t *signal, int most, Look look) {
    if (nvshmem_my_pe() == 0) {
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        for (int looks = 0; !look(1); ++looks)
            if (looks == most) __trap();
        data[SEEN] = 1;
    }
}

#define OR_TRAP(name, most, look) extern "C" __global__ void name(int *data, uint64_t *signal, int few) { or_trap(data, signal, most, look); }
OR_TRAP(load_or_trap, 10000, BY_LOAD)
OR_TRAP(fetch_or_trap, 10000, BY_FETCH)
OR_TRAP(test_or_trap, 10000, BY_TEST)
OR_TRAP(atomic_or_trap, 10000, BY_ATOMIC)
OR_TRAP(load_or_trap_soon, few, BY_LOAD)
OR_TRAP(test_or_trap_soon, few, BY_TEST)
OR_TRAP(atomic_or_trap_soon, few, BY_ATOMIC)

// The same by tests that could look at several words, and look at one.
#define BY_TEST_OF_ANY [=](uint64_t round) { return nvshmem_uint64_test_any(signal, 1, NULL, NVSHMEM_CMP_GE, round) != (size_t)-1; }
#define BY_TEST_OF_SOME [=](uint64_t round) { size_t found[1]; return nvshmem_uint64_test_some(signal, 1, found, NULL, NVSHMEM_CMP_GE, round) != 0; }
// The second word is left out.
struct Status { int of[2]; };
#define BY_TEST_OF_REST [=, status = Status{{0, 1}}](uint64_t round) { return nvshmem_uint64_test_all(signal, 2, status.of, NVSHMEM_CMP_GE, round); }
AROUND(around_by_test_of_any, true, BY_TEST_OF_ANY)
AROUND(around_by_test_of_some, true, BY_TEST_OF_SOME)
AROUND(around_by_test_of_rest, true, BY_TEST_OF_REST)
AROUND(around_by_test_of_all_without_fence, false, BY_TEST_OF_ALL)

// Each PE signals all others in each round, with a number behind, and waits until all others have signalled.
template <bool fenced, typename All> __device__ void among_all(int *data, uint64_t *signal, int rounds, All have_come) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    int sum = 0;
#pragma unroll 1
    for (int round = 1; round <= rounds; ++round) {
#pragma unroll 1
        for (int i = 1; i < n; ++i) {
            const int to = (me + i) % n;
            nvshmem_int_p(data + (me + n - to) % n - 1, round, to);
            if (fenced) nvshmem_fence();
            nvshmemx_signal_op(signal + (me + n - to) % n - 1, round, NVSHMEM_SIGNAL_SET, to);
        }
        auto all = have_come(round);
        while (!all()) {}
#pragma unroll 1
        for (int i = 0; i < n - 1; ++i) sum += data[i];
        nvshmem_barrier_all();
    }
    data[SEEN] = sum;
}

#define AMONG(name, fenced, all) extern "C" __global__ void name(int *data, uint64_t *signal, int rounds) { among_all<fenced>(data, signal, rounds, all); }
struct Values { uint64_t of[2]; };
#define OTHERS others = (size_t)nvshmem_n_pes() - 1
#define ALL_BY_WAIT [=, OTHERS](uint64_t round) { return [=] { nvshmem_uint64_wait_until_all(signal, others, NULL, NVSHMEM_CMP_GE, round); return true; }; }
#define ALL_BY_TEST [=, OTHERS](uint64_t round) { return [=] { return nvshmem_uint64_test_all(signal, others, NULL, NVSHMEM_CMP_GE, round); }; }
#define ALL_BY_VALUES [=, OTHERS](uint64_t round) { return [=, all = Values{{round, round}}]() mutable { return nvshmem_uint64_test_all_vector(signal, others, NULL, NVSHMEM_CMP_GE, all.of); }; }
AMONG(all_by_wait, true, ALL_BY_WAIT)
AMONG(all_by_test, true, ALL_BY_TEST)
AMONG(all_by_test_of_values, true, ALL_BY_VALUES)
AMONG(all_by_wait_without_fence, false, ALL_BY_WAIT)
AMONG(all_by_test_without_fence, false, ALL_BY_TEST)

// The same without numbers: who has heard of all others goes on, and may signal again before they have looked.
template <typename All> __device__ void rounds_of_all(int *data, uint64_t *signal, int rounds, All have_come) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
#pragma unroll 1
    for (int round = 1; round <= rounds; ++round) {
        nvshmem_fence();
#pragma unroll 1
        for (int i = 1; i < n; ++i) nvshmemx_signal_op(signal + n - i - 1, round, NVSHMEM_SIGNAL_SET, (me + i) % n);
        auto all = have_come(round);
        while (!all()) {}
    }
    data[SEEN] = rounds;
}

#define ROUNDS(name, all) extern "C" __global__ void name(int *data, uint64_t *signal, int rounds) { rounds_of_all(data, signal, rounds, all); }
ROUNDS(rounds_by_wait, ALL_BY_WAIT)
ROUNDS(rounds_by_test, ALL_BY_TEST)

// PE 0 sets two signals of PE 1 and takes the first one back. If PE 1 has seen both at once, it says so. It may come too late.
extern "C" __global__ void all_at_once(int *data, uint64_t *signal, int last) {
    if (nvshmem_my_pe() == 0) {
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1);
        nvshmem_fence();
        if (last) nvshmemx_signal_op(signal, 0, NVSHMEM_SIGNAL_SET, 1);
        nvshmem_fence();
        nvshmemx_signal_op(signal + 1, 1, NVSHMEM_SIGNAL_SET, 1);
        nvshmem_fence();
        if (!last) nvshmemx_signal_op(signal, 0, NVSHMEM_SIGNAL_SET, 1);
    } else {
        while (!nvshmem_uint64_test_all(signal, 2, NULL, NVSHMEM_CMP_EQ, 1)) {}
        data[SEEN] = 1;
    }
}

// One of two signals comes, and the thread says which.
extern "C" __global__ void which_of_two(int *data, uint64_t *signal, int) {
    if (nvshmem_my_pe() == 0) {
        nvshmemx_signal_op(signal + 1, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        size_t which;
        while ((which = nvshmem_uint64_test_any(signal, 2, NULL, NVSHMEM_CMP_EQ, 1)) == (size_t)-1) {}
        data[SEEN] = 1 + which;
    }
}

// What is left out is said in shared memory, where other threads could change it.
extern "C" __global__ void all_by_shared_status(int *data, uint64_t *signal, int) {
    __shared__ int status[2];
    status[0] = 0;
    status[1] = 1;
    if (nvshmem_my_pe() == 0) {
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        while (!nvshmem_uint64_test_all(signal, 2, status, NVSHMEM_CMP_EQ, 1)) {}
        data[SEEN] = 1;
    }
}
