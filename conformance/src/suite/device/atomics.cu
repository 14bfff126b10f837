// Atomic operations: all of them, of 32 and 64 bits, with and without a result, by one and by several.
#include "kernel.h"

// By all PEs, on a word of PE 0.
KERNEL(atomic_inc) { nvshmem_uint64_atomic_inc(words, 0); }
KERNEL(atomic_add) { nvshmem_uint64_atomic_add(words, 10 + ME, 0); }
KERNEL(atomic_or) { nvshmem_uint64_atomic_or(words, 1 << ME, 0); }
KERNEL(atomic_xor) { nvshmem_uint64_atomic_xor(words, 3 << ME, 0); }
KERNEL(atomic_set) { nvshmem_uint64_atomic_set(words, ME + 1, 0); }
KERNEL(atomic_swap) { out[0] = (int)nvshmem_uint64_atomic_swap(words, ME + 1, 0); }
KERNEL(atomic_fetch_inc) { out[0] = (int)nvshmem_uint64_atomic_fetch_inc(words, 0); }
KERNEL(atomic_fetch_add) { out[0] = (int)nvshmem_uint64_atomic_fetch_add(words, 1, 0); }
KERNEL(atomic_fetch_or) { out[0] = (int)nvshmem_uint64_atomic_fetch_or(words, 1 << ME, 0); }
KERNEL(atomic_fetch_xor) { out[0] = (int)nvshmem_uint64_atomic_fetch_xor(words, 3 << ME, 0); }
KERNEL(atomic_compare_swap) { out[0] = nvshmem_uint64_atomic_compare_swap(words, 0, ME + 1, 0) == 0; }
KERNEL(atomic_fetch) {
    if (ME == 1) nvshmem_uint64_atomic_set(words, 7, 0);
    if (ME == 0) out[0] = (int)nvshmem_uint64_atomic_fetch(words, 0);
}
KERNEL(atomic_and) {
    if (ME == 0) {
        nvshmem_uint64_atomic_set(words, 0xff, 0);
        nvshmem_quiet();
        nvshmemx_signal_op(words + 1, 1, NVSHMEM_SIGNAL_SET, 1);
        nvshmem_uint64_atomic_and(words, 0x3c, 0);
    } else {
        nvshmem_signal_wait_until(words + 1, NVSHMEM_CMP_EQ, 1);
        out[0] = (int)nvshmem_uint64_atomic_fetch_and(words, 0x0f, 0);
    }
}

// One after another, by one thread. What returns a value has been done.
KERNEL(atomic_swap_set_fetch) {
    if (ME != 0) return;
    nvshmem_uint64_atomic_set(words, 9, 1);
    nvshmem_quiet();
    out[0] = (int)nvshmem_uint64_atomic_swap(words, 4, 1);
    out[1] = (int)nvshmem_uint64_atomic_fetch(words, 1);
}
KERNEL(atomics_of_64_bits) {
    if (ME != 0) return;
    out[0] = (int)nvshmem_uint64_atomic_fetch_or(words, 6, 1);
    out[1] = (int)nvshmem_uint64_atomic_fetch_and(words, 3, 1);
    out[2] = (int)nvshmem_uint64_atomic_fetch_xor(words, 7, 1);
    out[3] = (int)nvshmem_uint64_atomic_fetch_add(words, 1ull << 32, 1);
    out[4] = (int)nvshmem_uint64_atomic_fetch_inc(words, 1);
    out[5] = (int)(nvshmem_uint64_atomic_compare_swap(words, (1ull << 32) + 6, 1ull << 40, 1) >> 32);
    out[6] = (int)(nvshmem_uint64_atomic_swap(words, 8, 1) >> 40);
    out[7] = (int)nvshmem_uint64_atomic_fetch(words, 1);
}
KERNEL(atomics_of_32_bits) {
    if (ME != 0) return;
    unsigned *word = (unsigned *)data + 1;
    out[0] = (int)nvshmem_uint32_atomic_fetch_or(word, 6, 1);
    out[1] = (int)nvshmem_uint32_atomic_fetch_and(word, 3, 1);
    out[2] = (int)nvshmem_uint32_atomic_fetch_xor(word, 7, 1);
    out[3] = (int)nvshmem_uint32_atomic_fetch_add(word, 0xfffffffe, 1);
    out[4] = (int)nvshmem_uint32_atomic_fetch_inc(word, 1);
    out[5] = (int)nvshmem_uint32_atomic_compare_swap(word, 4, 20, 1);
    out[6] = (int)nvshmem_uint32_atomic_swap(word, 8, 1);
    out[7] = (int)nvshmem_uint32_atomic_fetch(word, 1);
}
KERNEL(updates_of_32_bits) {
    nvshmem_uint_atomic_inc((unsigned *)data, 0);
    nvshmem_uint_atomic_add((unsigned *)data + 1, 10 + ME, 0);
    nvshmem_uint_atomic_or((unsigned *)data + 2, 1 << ME, 0);
    nvshmem_uint_atomic_xor((unsigned *)data + 3, 3 << ME, 0);
    nvshmem_uint_atomic_and((unsigned *)data + 4, 1, 0);
}
KERNEL(atomics_below_zero) {
    if (ME != 0) return;
    out[0] = nvshmem_int_atomic_fetch_add(data, -3, 1);
    out[1] = nvshmem_int_atomic_fetch_add(data, 1, 1);
    out[2] = (int)nvshmem_long_atomic_fetch_add((long *)(data + 2), -3, 1);
    out[3] = (int)nvshmem_long_atomic_fetch_inc((long *)(data + 2), 1);
}
KERNEL(atomics_of_floats) {
    if (ME != 0) return;
    nvshmem_float_atomic_set((float *)data, 1.5f, 1);
    nvshmem_quiet();
    out[0] = (int)(2 * nvshmem_float_atomic_swap((float *)data, 2.5f, 1));
    out[1] = (int)(2 * nvshmem_float_atomic_fetch((float *)data, 1));
    out[2] = (int)nvshmem_double_atomic_swap((double *)(data + 2), 0.5, 1);
    out[3] = (int)(4 * nvshmem_double_atomic_fetch((double *)(data + 2), 1));
}
KERNEL(compare_swap_of_another_value) {
    if (ME != 0) return;
    out[0] = nvshmem_int_atomic_compare_swap(data, 1, 5, 1);
    out[1] = nvshmem_int_atomic_compare_swap(data, 0, 6, 1);
    out[2] = nvshmem_int_atomic_compare_swap(data, 0, 7, 1);
}
KERNEL(atomic_on_ones_own) {
    nvshmem_int_atomic_add(data, 3, ME);
    nvshmem_quiet();
    out[0] = nvshmem_int_atomic_fetch(data, ME);
}

// Threads and PEs take tickets.
KERNEL(tickets_of_threads) {
    if (ME == 0) out[threadIdx.x] = nvshmem_int_atomic_fetch_inc(data, 1);
}
KERNEL(tickets_of_blocks) {
    if (ME == 0) out[blockIdx.x] = nvshmem_int_atomic_fetch_inc(data, 1);
}
KERNEL(queue) {
    const int slot = nvshmem_int_atomic_fetch_inc(data, 0);
    nvshmem_int_p(data + 1 + slot, 10 + ME, 0);
}
