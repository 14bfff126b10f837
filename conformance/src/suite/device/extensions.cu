// What NVSHMEM has for kernels from 3.8 on: flushes, queue pairs, regions.
#include "kernel.h"

// PE 0 sends, does something between, and sets a flag. PE 1 waits for the flag and looks.
#define MESSAGE(SEND, BETWEEN, FLAG)                                                                                    \
    if (ME == 0) {                                                                                                      \
        SEND;                                                                                                           \
        BETWEEN;                                                                                                        \
        if (FIRST) FLAG;                                                                                                \
    } else {                                                                                                            \
        if (FIRST) nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);                                                 \
        __syncthreads();                                                                                                \
        if (FIRST) out[0] = data[0], out[1] = data[1];                                                                  \
    }
#define SIGNAL nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_SET, 1)
#define QP NVSHMEMX_QP_DEFAULT

// The source of a put may be changed behind a flush.
KERNEL(source_after_flush) {
    data[16] = 5;
    nvshmem_int_put_nbi(data, data + 16, 1, NEXT);
    nvshmemx_flush();
    data[16] = 6;
    nvshmem_quiet();
}
KERNEL(source_after_flush_warp) {
    if (threadIdx.x < 4) data[16 + threadIdx.x] = 5;
    __syncwarp();
    nvshmemx_int_put_nbi_warp(data, data + 16, 4, NEXT);
    nvshmemx_flush_warp();
    if (threadIdx.x < 4) data[16 + threadIdx.x] = 6;
    if (FIRST) nvshmem_quiet();
}
KERNEL(source_after_flush_block) {
    if (threadIdx.x < 4) data[16 + threadIdx.x] = 5;
    __syncthreads();
    nvshmemx_int_put_nbi_block(data, data + 16, 4, NEXT);
    nvshmemx_flush_block();
    if (threadIdx.x < 4) data[16 + threadIdx.x] = 6;
    if (FIRST) nvshmem_quiet();
}
// A flush is about what its own thread has put.
KERNEL(source_after_flush_by_another) {
    if (!FIRST) {
        data[16] = 5;
        nvshmem_int_put_nbi(data, data + 16, 1, NEXT);
    }
    __syncthreads();
    if (FIRST) nvshmemx_flush();
    __syncthreads();
    if (!FIRST) {
        data[16] = 6;
        nvshmem_quiet();
    }
}
// It tells nothing of the target.
KERNEL(flag_after_flush) { MESSAGE(nvshmem_int_put_nbi(data, in + 1, 2, 1), nvshmemx_flush(), SIGNAL) }

// Operations with a queue pair do what they do without one.
KERNEL(qp_p) { nvshmemx_qp_int_p(data, in[1], NEXT, QP); }
KERNEL(qp_g) { out[0] = nvshmemx_qp_int_g(in + 2, NEXT, QP); }
KERNEL(qp_put) { nvshmemx_qp_int_put(data, in, 4, NEXT, QP); }
KERNEL(qp_get) { nvshmemx_qp_int_get(out, in, 4, NEXT, QP); }
KERNEL(qp_put_warp) { nvshmemx_qp_int_put_warp(data, in, 4, NEXT, QP); }
KERNEL(qp_get_block) { nvshmemx_qp_int_get_block(out, in, 4, NEXT, QP); }
KERNEL(qp_put_signal) {
    MESSAGE(nvshmemx_qp_int_put_signal(data, in + 1, 2, words, 1, NVSHMEM_SIGNAL_SET, 1, QP), , )
}
KERNEL(qp_put_signal_nbi_block) {
    MESSAGE(nvshmemx_qp_int_put_signal_nbi_block(data, in + 1, 2, words, 1, NVSHMEM_SIGNAL_SET, 1, QP), , )
}
KERNEL(qp_source_after_put_nbi) {
    data[16] = 5;
    nvshmemx_qp_int_put_nbi(data, data + 16, 1, NEXT, QP);
    data[16] = 6;
    nvshmemx_qp_handle_t qp = QP;
    nvshmemx_qp_quiet(NEXT, &qp, 1);
}
// A quiet, and a fence, of the queue pair that the data took.
KERNEL(flag_after_qp_quiet) {
    nvshmemx_qp_handle_t qp = QP;
    MESSAGE(nvshmemx_qp_int_put_nbi(data, in + 1, 2, 1, QP), nvshmemx_qp_quiet(1, &qp, 1), SIGNAL)
}
KERNEL(flag_after_qp_quiet_block) {
    nvshmemx_qp_handle_t qp = QP;
    MESSAGE(nvshmemx_qp_int_put_nbi_block(data, in + 1, 2, 1, QP), nvshmemx_qp_quiet_block(1, &qp, 1), SIGNAL)
}
#define QP_SIGNAL nvshmemx_qp_signal_op(words, 1, NVSHMEM_SIGNAL_SET, 1, QP)
KERNEL(flag_after_qp_fence) {
    nvshmemx_qp_handle_t qp = QP;
    MESSAGE(nvshmemx_qp_int_put(data, in + 1, 2, 1, QP), nvshmemx_qp_fence(1, &qp, 1), QP_SIGNAL)
}
KERNEL(flag_without_qp_fence) { MESSAGE(nvshmemx_qp_int_put(data, in + 1, 2, 1, QP), , QP_SIGNAL) }

// A region is a hint: whatever it answers, what is put in it arrives.
KERNEL(put_in_a_region) {
    nvshmemx_region_attrs_t attrs = NVSHMEMX_REGION_ATTRS_INITIALIZER;
    attrs.hints = NVSHMEMX_REGION_HINT_BATCH_RMA;
    nvshmemx_region_handle_t region = 0;
    nvshmemx_region_start_block(&region, &attrs);
    if (threadIdx.x < 4) nvshmem_int_put_nbi(data + threadIdx.x, in + threadIdx.x, 1, NEXT);
    nvshmemx_region_stop_block(region);
    nvshmem_quiet();
}
