/* The calls of `onesided bench --backend nvshmem`, in loops that do nothing else: no timing, no waiting.
 *
 * Compiled twice. nvshmem.cpp includes it: the C++ program, in processes of its own. Alone it is a shared object that our
 * own processes open, so that both loops meet the same memory, stream and core (hardware/cpp.rs declares the functions
 * once more). It needs libnvshmem_host and nothing of CUDA but a type.
 */
#include <nvshmem_host.h>

#include <cstddef>
#include <cstdint>

extern "C" {

/* Of the library that these loops call: 2 or more after initialization. */
int loop_status() { return nvshmemx_init_status(); }

/* Puts to PE 1. */
void loop_put(uint32_t operations, void *dst, const void *src, size_t bytes, cudaStream_t stream) {
    for (uint32_t k = 0; k < operations; k++) nvshmemx_putmem_on_stream(dst, src, bytes, 1, stream);
}

/* Gets from PE 1. */
void loop_get(uint32_t operations, void *dst, const void *src, size_t bytes, cudaStream_t stream) {
    for (uint32_t k = 0; k < operations; k++) nvshmemx_getmem_on_stream(dst, src, bytes, 1, stream);
}

/* Gets from PE 1 by the host. Behind a network the data is there after a quiet only. */
void loop_host_get(uint32_t operations, void *dst, const void *src, size_t bytes) {
    bool is_far = nvshmem_ptr(src, 1) == nullptr;
    for (uint32_t k = 0; k < operations; k++) {
        nvshmem_getmem(dst, src, bytes, 1);
        if (is_far) nvshmem_quiet();
    }
}

/* There and back between PE 0 and PE 1: a put with signal and a wait. `turn` is the last value that the flag had. */
void loop_ping_pong(uint32_t operations, void *dst, const void *src, size_t bytes, uint64_t *flag, uint64_t turn, int me,
                    cudaStream_t stream) {
    for (uint32_t k = 0; k < operations; k++) {
        turn++;
        if (me == 1) nvshmemx_signal_wait_until_on_stream(flag, NVSHMEM_CMP_GE, turn, stream);
        nvshmemx_putmem_signal_on_stream(dst, src, bytes, flag, turn, NVSHMEM_SIGNAL_SET, 1 - me, stream);
        if (me == 0) nvshmemx_signal_wait_until_on_stream(flag, NVSHMEM_CMP_GE, turn, stream);
    }
}

/* Barriers of all PEs. */
void loop_barrier(uint32_t operations, cudaStream_t stream) {
    for (uint32_t k = 0; k < operations; k++) nvshmemx_barrier_all_on_stream(stream);
}

/* Sums over all PEs. Ends with the first status that is not 0, and returns it. */
int loop_reduce(uint32_t operations, float *sums, const float *addends, size_t count, cudaStream_t stream) {
    int status = 0;
    for (uint32_t k = 0; k < operations && status == 0; k++)
        status = nvshmemx_float_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, sums, addends, count, stream);
    return status;
}

} /* extern "C" */
