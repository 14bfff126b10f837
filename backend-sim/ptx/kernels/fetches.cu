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
