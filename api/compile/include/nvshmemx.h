/* NVSHMEM's extensions for kernels, declared and not defined: calls that a warp or a block makes together, queue pairs, signals.
 * See nvshmem.h.
 */
#ifndef ONESIDED_NVSHMEMX_H
#define ONESIDED_NVSHMEMX_H

#include "nvshmem.h"

/* What functions return that can fail. */
enum nvshmemx_status {
    NVSHMEMX_SUCCESS = 0,
    NVSHMEMX_ERROR_INVALID_VALUE = 1,
    NVSHMEMX_ERROR_OUT_OF_MEMORY = 2,
    NVSHMEMX_ERROR_NOT_SUPPORTED = 3,
    NVSHMEMX_ERROR_SYMMETRY = 4,
    NVSHMEMX_ERROR_GPU_NOT_SELECTED = 5,
    NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED = 6,
    NVSHMEMX_ERROR_INTERNAL = 7
};

/* All threads of the warp or block call, with the same arguments. */
#define NVSHMEMX_DECLARE_GROUP(GROUP)                                                                                   \
    NVSHMEM_TYPES_RMA(NVSHMEM_DECLARE_RMA, nvshmemx, GROUP)                                                             \
    NVSHMEM_DECLARE_SIZES(nvshmemx, GROUP)                                                                              \
    NVSHMEM_DECLARE_COLLECTIVES(nvshmemx, GROUP)                                                                        \
    NVSHMEM_DEVICE int nvshmemx_barrier##GROUP(nvshmem_team_t team);                                                    \
    NVSHMEM_DEVICE void nvshmemx_barrier_all##GROUP(void);                                                              \
    NVSHMEM_DEVICE int nvshmemx_team_sync##GROUP(nvshmem_team_t team);                                                  \
    NVSHMEM_DEVICE void nvshmemx_sync_all##GROUP(void);

NVSHMEMX_DECLARE_GROUP(_warp)
NVSHMEMX_DECLARE_GROUP(_block)
NVSHMEM_DEVICE int nvshmemx_barrier_warpgroup(nvshmem_team_t team); /* by four warps, the first of which is a multiple of four */

/* `double2` is the value and its index. */
NVSHMEM_DEVICE int nvshmemx_double2_maxloc_reduce_block(nvshmem_team_t team, double2 *dest, const double2 *source,
                                                        size_t nreduce);

#define NVSHMEMX_DECLARE_FLOAT_AMO(NAME, TYPE)                                                                          \
    NVSHMEM_DEVICE void nvshmemx_##NAME##_atomic_add(TYPE *dest, TYPE value, int pe);                                   \
    NVSHMEM_DEVICE TYPE nvshmemx_##NAME##_atomic_fetch_add(TYPE *dest, TYPE value, int pe);

NVSHMEMX_DECLARE_FLOAT_AMO(half, __half)
NVSHMEMX_DECLARE_FLOAT_AMO(float, float)
NVSHMEMX_DECLARE_FLOAT_AMO(double, double)

/* Signals; multicast addresses; that sources may be reused. */
NVSHMEM_DEVICE void nvshmemx_signal_op(uint64_t *sig_addr, uint64_t signal, int sig_op, int pe);
NVSHMEM_DEVICE void *nvshmemx_mc_ptr(nvshmem_team_t team, const void *ptr);
NVSHMEM_DEVICE void nvshmemx_flush(void);
NVSHMEM_DEVICE void nvshmemx_flush_warp(void);
NVSHMEM_DEVICE void nvshmemx_flush_block(void);

/* Shared memory that the library may use for transfers, from 3.8 on. All threads of the block give it, and take it back. */
typedef enum nvshmemx_smem_amount_t {
    NVSHMEMX_SMEM_RECOMMENDED = 0,
    NVSHMEMX_SMEM_MINIMUM = 1,
    NVSHMEMX_SMEM_BARRIERS_ONLY = 2
} nvshmemx_smem_amount_t;

NVSHMEM_DEVICE int nvshmemx_ask_smem(nvshmemx_smem_amount_t flag);
NVSHMEM_DEVICE void nvshmemx_give_smem(void *smem, size_t size);
NVSHMEM_DEVICE void nvshmemx_release_smem(void);

/* Regions, from 3.8 on: hints for speed, which change no result. All threads of the block start one, and stop it. */
typedef uint64_t nvshmemx_region_handle_t;

typedef enum {
    NVSHMEMX_REGION_HINT_NONE = 0,
    NVSHMEMX_REGION_HINT_BATCH_RMA = 1
} nvshmemx_region_hint_t;

#define NVSHMEMX_REGION_ATTRS_RESERVED_BYTES 60
#define NVSHMEMX_REGION_ATTRS_INITIALIZER {NVSHMEMX_REGION_HINT_NONE, {0}}

typedef struct nvshmemx_region_attrs {
    uint32_t hints;
    char reserved[NVSHMEMX_REGION_ATTRS_RESERVED_BYTES];
} nvshmemx_region_attrs_t;

NVSHMEM_DEVICE int nvshmemx_region_start_block(nvshmemx_region_handle_t *handle, const nvshmemx_region_attrs_t *attrs);
NVSHMEM_DEVICE int nvshmemx_region_stop_block(nvshmemx_region_handle_t handle);
NVSHMEM_DEVICE int nvshmemx_region_is_active(uint32_t hints, int *active);

/* Counted signals, from 3.8 on. All but the first are there only where NVSHMEM was built for logical endpoints. */
NVSHMEM_DEVICE void nvshmemx_signal_counted_reset(uint64_t *signal_addr);
NVSHMEM_DEVICE uint64_t nvshmemx_signal_counted_load(const uint64_t *signal_addr);
NVSHMEM_DEVICE void nvshmemx_signal_counted_wait_until(const uint64_t *signal_addr, uint64_t expected);
NVSHMEM_DEVICE int nvshmemx_putmem_signal_counted_nbi_block(void *dest, const void *source, size_t bytes,
                                                            uint64_t *signal_addr, int pe);

/* Queue pairs. The handles are made on the host. */
typedef int32_t nvshmemx_qp_handle_t;

enum {
    NVSHMEMX_QP_HOST = 0,
    NVSHMEMX_QP_DEFAULT = 1,
    NVSHMEMX_QP_ANY = 2147483647,
    NVSHMEMX_QP_ALL = 2147483647
};

#define NVSHMEMX_DECLARE_QP_RMA(NAME, TYPE, GROUP)                                                                      \
    NVSHMEM_DEVICE void nvshmemx_qp_##NAME##_put##GROUP(TYPE *dest, const TYPE *source, size_t nelems, int pe,          \
                                                        nvshmemx_qp_handle_t qp_index);                                 \
    NVSHMEM_DEVICE void nvshmemx_qp_##NAME##_get##GROUP(TYPE *dest, const TYPE *source, size_t nelems, int pe,          \
                                                        nvshmemx_qp_handle_t qp_index);                                 \
    NVSHMEM_DEVICE void nvshmemx_qp_##NAME##_put_nbi##GROUP(TYPE *dest, const TYPE *source, size_t nelems, int pe,      \
                                                            nvshmemx_qp_handle_t qp_index);                             \
    NVSHMEM_DEVICE void nvshmemx_qp_##NAME##_get_nbi##GROUP(TYPE *dest, const TYPE *source, size_t nelems, int pe,      \
                                                            nvshmemx_qp_handle_t qp_index);                             \
    NVSHMEM_DEVICE void nvshmemx_qp_##NAME##_put_signal##GROUP(TYPE *dest, const TYPE *source, size_t nelems,           \
                                                               uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, \
                                                               nvshmemx_qp_handle_t qp_index);                          \
    NVSHMEM_DEVICE void nvshmemx_qp_##NAME##_put_signal_nbi##GROUP(TYPE *dest, const TYPE *source, size_t nelems,       \
                                                                   uint64_t *sig_addr, uint64_t signal, int sig_op,     \
                                                                   int pe, nvshmemx_qp_handle_t qp_index);
#define NVSHMEMX_DECLARE_QP_ELEMENT(NAME, TYPE, ...)                                                                    \
    NVSHMEM_DEVICE void nvshmemx_qp_##NAME##_p(TYPE *dest, TYPE value, int pe, nvshmemx_qp_handle_t qp_index);          \
    NVSHMEM_DEVICE TYPE nvshmemx_qp_##NAME##_g(const TYPE *source, int pe, nvshmemx_qp_handle_t qp_index);
#define NVSHMEMX_DECLARE_QP_ORDER(GROUP)                                                                                \
    NVSHMEM_DEVICE void nvshmemx_qp_fence##GROUP(int pe, nvshmemx_qp_handle_t *qp_handle, int num_qps);                 \
    NVSHMEM_DEVICE void nvshmemx_qp_quiet##GROUP(int pe, nvshmemx_qp_handle_t *qp_handle, int num_qps);

NVSHMEM_TYPES_RMA(NVSHMEMX_DECLARE_QP_RMA, )
NVSHMEM_TYPES_RMA(NVSHMEMX_DECLARE_QP_RMA, _warp)
NVSHMEM_TYPES_RMA(NVSHMEMX_DECLARE_QP_RMA, _block)
NVSHMEM_TYPES_RMA(NVSHMEMX_DECLARE_QP_ELEMENT, )
NVSHMEMX_DECLARE_QP_ORDER()
NVSHMEMX_DECLARE_QP_ORDER(_warp)
NVSHMEMX_DECLARE_QP_ORDER(_block)
NVSHMEM_DEVICE void nvshmemx_qp_signal_op(uint64_t *sig_addr, uint64_t signal, int sig_op, int pe,
                                          nvshmemx_qp_handle_t qp_index);

#endif
