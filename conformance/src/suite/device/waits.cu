// Waits for words that puts and atomics change, and tests of them: one, all, any, some, with one value and with a vector of them.
#include "kernel.h"

// One word, with a sign and without, of every size. 0 stands there at first.
KERNEL(wait_until_eq) {
    nvshmem_int_p(data, 5, NEXT);
    nvshmem_int_wait_until(data, NVSHMEM_CMP_EQ, 5);
}
KERNEL(wait_until_ne) {
    nvshmem_long_p((long *)data, 5, NEXT);
    nvshmem_long_wait_until((long *)data, NVSHMEM_CMP_NE, 0);
    out[0] = data[0];
}
KERNEL(wait_until_gt) {
    nvshmem_uint_p((unsigned *)data, 0x80000000, NEXT);
    nvshmem_uint_wait_until((unsigned *)data, NVSHMEM_CMP_GT, 1);
}
KERNEL(wait_until_ge) {
    nvshmem_ushort_p((unsigned short *)data, 0xffff, NEXT);
    nvshmem_ushort_wait_until((unsigned short *)data, NVSHMEM_CMP_GE, 0xffff);
}
KERNEL(wait_until_lt) {
    nvshmem_int_p(data, -5, NEXT);
    nvshmem_int_wait_until(data, NVSHMEM_CMP_LT, 0);
}
KERNEL(wait_until_le) {
    nvshmem_short_p((short *)data, -5, NEXT);
    nvshmem_short_wait_until((short *)data, NVSHMEM_CMP_LE, -5);
}
KERNEL(wait_for_an_atomic) {
    if (ME != 0) nvshmem_int_atomic_inc(data, 0);
    if (ME == 0) nvshmem_int_wait_until(data, NVSHMEM_CMP_GE, 2);
}

// All of several; without those that `status` names; each for its own value.
KERNEL(wait_until_all) {
    for (int pe = 0; pe < N; pe++) nvshmem_uint64_p(words + ME, 5, pe);
    nvshmem_uint64_wait_until_all(words, N, nullptr, NVSHMEM_CMP_EQ, 5);
    out[0] = (int)(words[0] + words[N - 1]);
}
KERNEL(wait_until_all_but_some) {
    const int status[4] = {0, 1, 0, 1};
    nvshmem_uint64_p(words, 5, NEXT);
    nvshmem_uint64_p(words + 2, 5, NEXT);
    nvshmem_uint64_wait_until_all(words, 4, status, NVSHMEM_CMP_EQ, 5);
}
KERNEL(wait_until_all_vector) {
    int values[3] = {5, 6, 7};
    for (int i = 0; i < 3; i++) nvshmem_int_p(data + i, 5 + i, NEXT);
    nvshmem_int_wait_until_all_vector(data, 3, nullptr, NVSHMEM_CMP_EQ, values);
}

// Any of several. PEs 1 and 2 write to PE 0.
KERNEL(wait_until_any) {
    if (ME == 1) nvshmem_uint64_p(words + 3, 5, 0);
    if (ME == 0) out[0] = (int)nvshmem_uint64_wait_until_any(words, 4, nullptr, NVSHMEM_CMP_EQ, 5);
}
KERNEL(wait_until_any_of_two) {
    if (ME != 0) nvshmem_int_p(data + ME, 5, 0);
    if (ME == 0) out[0] = (int)nvshmem_int_wait_until_any(data, 3, nullptr, NVSHMEM_CMP_EQ, 5);
}
KERNEL(wait_until_any_twice) {
    int status[3] = {0, 0, 0};
    if (ME != 0) nvshmem_int_p(data + ME, 5, 0);
    if (ME != 0) return;
    for (int i = 0; i < 2; i++) {
        size_t which = nvshmem_int_wait_until_any(data, 3, status, NVSHMEM_CMP_EQ, 5);
        status[which] = 1;
        out[i] = (int)which;
    }
}
KERNEL(wait_until_any_vector) {
    int values[3] = {9, 5, 6};
    if (ME != 0) nvshmem_int_p(data + ME, 4 + ME, 0);
    if (ME == 0) out[0] = (int)nvshmem_int_wait_until_any_vector(data, 3, nullptr, NVSHMEM_CMP_EQ, values);
}

// Some of several: those that are there, one at least.
KERNEL(wait_until_some) {
    size_t which[3] = {9, 9, 9};
    if (ME != 0) nvshmem_int_p(data + ME, 5, 0);
    if (ME != 0) return;
    out[0] = (int)nvshmem_int_wait_until_some(data, 3, which, nullptr, NVSHMEM_CMP_EQ, 5);
    for (int i = 0; i < out[0]; i++) out[1 + i] = (int)which[i];
}
KERNEL(wait_until_some_vector) {
    size_t which[3] = {9, 9, 9};
    int values[3] = {9, 5, 6};
    if (ME != 0) nvshmem_int_p(data + ME, 4 + ME, 0);
    if (ME != 0) return;
    out[0] = (int)nvshmem_int_wait_until_some_vector(data, 3, which, nullptr, NVSHMEM_CMP_EQ, values);
    for (int i = 0; i < out[0]; i++) out[1 + i] = (int)which[i];
}

// Tests look once.
KERNEL(test) {
    if (ME == 1) nvshmem_int_p(data, 5, 0);
    if (ME == 0) out[0] = nvshmem_int_test(data, NVSHMEM_CMP_EQ, 5);
}
KERNEL(test_all) {
    if (ME != 0) nvshmem_int_p(data + ME, 5, 0);
    if (ME == 0) out[0] = nvshmem_int_test_all(data + 1, 2, nullptr, NVSHMEM_CMP_EQ, 5);
}
KERNEL(test_any) {
    if (ME != 0) nvshmem_int_p(data + ME, 5, 0);
    if (ME == 0) out[0] = (int)nvshmem_int_test_any(data, 3, nullptr, NVSHMEM_CMP_EQ, 5);
}
KERNEL(test_some) {
    size_t which[3] = {9, 9, 9};
    if (ME != 0) nvshmem_int_p(data + ME, 5, 0);
    if (ME != 0) return;
    out[0] = (int)nvshmem_int_test_some(data, 3, which, nullptr, NVSHMEM_CMP_EQ, 5);
    for (int i = 0; i < out[0]; i++) out[1 + i] = (int)which[i];
}
KERNEL(test_all_vector) {
    int values[2] = {5, 6};
    if (ME != 0) nvshmem_int_p(data + ME, 4 + ME, 0);
    if (ME == 0) out[0] = nvshmem_int_test_all_vector(data + 1, 2, nullptr, NVSHMEM_CMP_EQ, values);
}
KERNEL(test_any_vector) {
    int values[3] = {9, 5, 6};
    const int status[3] = {0, 1, 0};
    if (ME != 0) nvshmem_int_p(data + ME, 4 + ME, 0);
    if (ME == 0) out[0] = (int)nvshmem_int_test_any_vector(data, 3, status, NVSHMEM_CMP_EQ, values);
}
KERNEL(test_some_vector) {
    size_t which[3] = {9, 9, 9};
    int values[3] = {9, 5, 6};
    if (ME != 0) nvshmem_int_p(data + ME, 4 + ME, 0);
    if (ME != 0) return;
    out[0] = (int)nvshmem_int_test_some_vector(data, 3, which, nullptr, NVSHMEM_CMP_EQ, values);
    for (int i = 0; i < out[0]; i++) out[1 + i] = (int)which[i];
}

// Loops of tests are waits.
KERNEL(test_in_a_loop) {
    if (ME == 1) nvshmem_uint64_p(words, 5, 0);
    if (ME == 0) {
        while (!nvshmem_uint64_test(words, NVSHMEM_CMP_EQ, 5)) {}
        out[0] = 1;
    }
}
KERNEL(test_any_in_a_loop) {
    if (ME != 0) nvshmem_int_p(data + ME, 5, 0);
    if (ME != 0) return;
    size_t which;
    while ((which = nvshmem_int_test_any(data, 3, nullptr, NVSHMEM_CMP_EQ, 5)) == (size_t)-1) {}
    out[0] = (int)which;
}
