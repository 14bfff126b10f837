// Atomics of the host: libnvshmem exports those as stubs. One thread calls the device's. Only bits count, so a type is its size.
#include <nvshmem.h>

enum { FETCH, SET, ADD, AND, OR, XOR, COMPARE_SWAP };

#define ATOMIC(NAME, TYPE)                                                                                  \
    static __device__ TYPE atomic(TYPE *word, TYPE value, TYPE cond, int op, bool fetches, int pe) {        \
        switch (op) {                                                                                       \
        case FETCH: return nvshmem_##NAME##_atomic_fetch(word, pe);                                         \
        case SET:                                                                                           \
            if (fetches) return nvshmem_##NAME##_atomic_swap(word, value, pe);                              \
            nvshmem_##NAME##_atomic_set(word, value, pe);                                                   \
            return 0;                                                                                       \
        case ADD:                                                                                           \
            if (fetches) return nvshmem_##NAME##_atomic_fetch_add(word, value, pe);                         \
            nvshmem_##NAME##_atomic_add(word, value, pe);                                                   \
            return 0;                                                                                       \
        case AND:                                                                                           \
            if (fetches) return nvshmem_##NAME##_atomic_fetch_and(word, value, pe);                         \
            nvshmem_##NAME##_atomic_and(word, value, pe);                                                   \
            return 0;                                                                                       \
        case OR:                                                                                            \
            if (fetches) return nvshmem_##NAME##_atomic_fetch_or(word, value, pe);                          \
            nvshmem_##NAME##_atomic_or(word, value, pe);                                                    \
            return 0;                                                                                       \
        case XOR:                                                                                           \
            if (fetches) return nvshmem_##NAME##_atomic_fetch_xor(word, value, pe);                         \
            nvshmem_##NAME##_atomic_xor(word, value, pe);                                                   \
            return 0;                                                                                       \
        default: return nvshmem_##NAME##_atomic_compare_swap(word, cond, value, pe);                        \
        }                                                                                                   \
    }

ATOMIC(uint32, uint32_t)
ATOMIC(uint64, uint64_t)

// `answer` is a word of the host's memory. The quiet completes what does not fetch: the host's own quiet does not know of it.
extern "C" __global__ void onesided_atomic(void *word, uint64_t value, uint64_t cond, int op, int size, int fetches, int pe,
                                           volatile uint64_t *answer) {
    uint64_t old = size == 4 ? atomic((uint32_t *)word, (uint32_t)value, (uint32_t)cond, op, fetches, pe)
                             : atomic((uint64_t *)word, value, cond, op, fetches, pe);
    if (fetches) *answer = old;
    else nvshmem_quiet();
}
