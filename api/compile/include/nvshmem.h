/* The device functions of NVSHMEM, declared and not defined.
 *
 * A kernel that is compiled with this header calls NVSHMEM by name. The simulator answers those calls; on a GPU, NVIDIA's device
 * library is linked behind them. Names, types and constants are those of NVSHMEM's documentation. The header needs no other one, so
 * that NVRTC compiles it without an include folder of CUDA.
 *
 * Not declared: host functions, functions on streams, and the tile API, which consists of templates.
 * nvshmemx.h declares the extensions: groups of threads, queue pairs, signals.
 */
#ifndef ONESIDED_NVSHMEM_H
#define ONESIDED_NVSHMEM_H

#ifdef __CUDACC_RTC__
/* NVRTC has no <cstdint>. These are the types that <cuda/std/cstdint> gives under NVRTC: a second declaration must be the same. */
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
typedef decltype(static_cast<char *>(nullptr) - static_cast<char *>(nullptr)) ptrdiff_t;
/* Calls return SIZE_MAX for "none". The words are those of <cuda/std/cstdint> and <cuda/std/climits>, which may be included before or behind this. */
#ifndef INT_MAX
#define INT_MIN (-INT_MAX - 1)
#define INT_MAX 0x7fffffff
#define UINT_MAX 0xffffffff
#define LLONG_MIN (-LLONG_MAX - 1)
#define LLONG_MAX 0x7fffffffffffffffLL
#define ULLONG_MAX 0xffffffffffffffffUL
#endif
#ifndef SIZE_MAX
#define INT32_MIN INT_MIN
#define INT64_MIN LLONG_MIN
#define INT32_MAX INT_MAX
#define INT64_MAX LLONG_MAX
#define UINT32_MAX UINT_MAX
#define UINT64_MAX ULLONG_MAX
#define SIZE_MAX UINT64_MAX
#endif
#else
#include <stddef.h>
#include <stdint.h>
#endif

/* Defined by <cuda_fp16.h> and <cuda_bf16.h>, which a kernel includes that uses them. */
struct __half;
struct __nv_bfloat16;

#define NVSHMEM_MAJOR_VERSION 1
#define NVSHMEM_MINOR_VERSION 3
#define NVSHMEM_MAX_NAME_LEN 256
#define NVSHMEM_VENDOR_MAJOR_VERSION 3
#define NVSHMEM_VENDOR_MINOR_VERSION 8
#define NVSHMEM_VENDOR_PATCH_VERSION 0

typedef int32_t nvshmem_team_t;

enum {
    NVSHMEM_TEAM_INVALID = -1,
    NVSHMEM_TEAM_WORLD = 0,
    NVSHMEM_TEAM_SHARED = 1,
    NVSHMEMX_TEAM_NODE = 2,
    NVSHMEMX_TEAM_SAME_MYPE_NODE = 3,
    NVSHMEMI_TEAM_SAME_GPU = 4,
    NVSHMEMI_TEAM_GPU_LEADERS = 5
};

enum {
    NVSHMEM_CMP_EQ = 0,
    NVSHMEM_CMP_NE = 1,
    NVSHMEM_CMP_GT = 2,
    NVSHMEM_CMP_LE = 3,
    NVSHMEM_CMP_LT = 4,
    NVSHMEM_CMP_GE = 5
};

enum { NVSHMEM_SIGNAL_SET = 9, NVSHMEM_SIGNAL_ADD = 10 };

enum {
    NVSHMEM_PE_INVALID = -1,
    NVSHMEMX_PE_ANY = 1 << 15,
    NVSHMEMX_PE_ALL = 1 << 15
};

#define NVSHMEM_DEVICE extern "C" __device__

/* The lists of types: X(NAME, TYPE, ...) for each. The further arguments are handed through. */
#define NVSHMEM_TYPES_BITWISE_AMO(X, ...)                                                                               \
    X(uint, unsigned int, __VA_ARGS__)                                                                                  \
    X(ulong, unsigned long, __VA_ARGS__)                                                                                \
    X(ulonglong, unsigned long long, __VA_ARGS__)                                                                       \
    X(int32, int32_t, __VA_ARGS__)                                                                                      \
    X(int64, int64_t, __VA_ARGS__)                                                                                      \
    X(uint32, uint32_t, __VA_ARGS__)                                                                                    \
    X(uint64, uint64_t, __VA_ARGS__)
#define NVSHMEM_TYPES_STANDARD_AMO(X, ...)                                                                              \
    NVSHMEM_TYPES_BITWISE_AMO(X, __VA_ARGS__)                                                                           \
    X(int, int, __VA_ARGS__)                                                                                            \
    X(long, long, __VA_ARGS__)                                                                                          \
    X(longlong, long long, __VA_ARGS__)                                                                                 \
    X(size, size_t, __VA_ARGS__)                                                                                        \
    X(ptrdiff, ptrdiff_t, __VA_ARGS__)
#define NVSHMEM_TYPES_EXTENDED_AMO(X, ...)                                                                              \
    NVSHMEM_TYPES_STANDARD_AMO(X, __VA_ARGS__)                                                                          \
    X(half, __half, __VA_ARGS__)                                                                                        \
    X(float, float, __VA_ARGS__)                                                                                        \
    X(double, double, __VA_ARGS__)
#define NVSHMEM_TYPES_WAIT(X, ...)                                                                                      \
    NVSHMEM_TYPES_STANDARD_AMO(X, __VA_ARGS__)                                                                          \
    X(short, short, __VA_ARGS__)                                                                                        \
    X(ushort, unsigned short, __VA_ARGS__)
#define NVSHMEM_TYPES_BITWISE_REDUCE(X, ...)                                                                            \
    NVSHMEM_TYPES_BITWISE_AMO(X, __VA_ARGS__)                                                                           \
    X(uchar, unsigned char, __VA_ARGS__)                                                                                \
    X(ushort, unsigned short, __VA_ARGS__)                                                                              \
    X(int8, int8_t, __VA_ARGS__)                                                                                        \
    X(int16, int16_t, __VA_ARGS__)                                                                                      \
    X(uint8, uint8_t, __VA_ARGS__)                                                                                      \
    X(uint16, uint16_t, __VA_ARGS__)                                                                                    \
    X(size, size_t, __VA_ARGS__)
#define NVSHMEM_TYPES_REDUCE(X, ...)                                                                                    \
    NVSHMEM_TYPES_BITWISE_REDUCE(X, __VA_ARGS__)                                                                        \
    X(char, char, __VA_ARGS__)                                                                                          \
    X(schar, signed char, __VA_ARGS__)                                                                                  \
    X(short, short, __VA_ARGS__)                                                                                        \
    X(int, int, __VA_ARGS__)                                                                                            \
    X(long, long, __VA_ARGS__)                                                                                          \
    X(longlong, long long, __VA_ARGS__)                                                                                 \
    X(bfloat16, __nv_bfloat16, __VA_ARGS__)                                                                             \
    X(half, __half, __VA_ARGS__)                                                                                        \
    X(float, float, __VA_ARGS__)                                                                                        \
    X(double, double, __VA_ARGS__)
#define NVSHMEM_TYPES_RMA(X, ...)                                                                                       \
    NVSHMEM_TYPES_REDUCE(X, __VA_ARGS__)                                                                                \
    X(ptrdiff, ptrdiff_t, __VA_ARGS__)

/* The library: who am I. */
NVSHMEM_DEVICE int nvshmem_my_pe(void);
NVSHMEM_DEVICE int nvshmem_n_pes(void);
NVSHMEM_DEVICE void nvshmem_info_get_version(int *major, int *minor);
NVSHMEM_DEVICE void nvshmem_info_get_name(char *name);
NVSHMEM_DEVICE void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch);
NVSHMEM_DEVICE int nvshmem_team_my_pe(nvshmem_team_t team);
NVSHMEM_DEVICE int nvshmem_team_n_pes(nvshmem_team_t team);
NVSHMEM_DEVICE int nvshmem_team_translate_pe(nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team);
NVSHMEM_DEVICE void *nvshmem_ptr(const void *dest, int pe);

/* Ends the job on all PEs, with this status. The calling thread does not return. */
NVSHMEM_DEVICE void nvshmem_global_exit(int status);

/* Remote memory access. GROUP is empty, _warp or _block; PREFIX is nvshmem or nvshmemx. */
#define NVSHMEM_DECLARE_RMA(NAME, TYPE, PREFIX, GROUP)                                                                  \
    NVSHMEM_DEVICE void PREFIX##_##NAME##_put##GROUP(TYPE *dest, const TYPE *source, size_t nelems, int pe);            \
    NVSHMEM_DEVICE void PREFIX##_##NAME##_get##GROUP(TYPE *dest, const TYPE *source, size_t nelems, int pe);            \
    NVSHMEM_DEVICE void PREFIX##_##NAME##_put_nbi##GROUP(TYPE *dest, const TYPE *source, size_t nelems, int pe);        \
    NVSHMEM_DEVICE void PREFIX##_##NAME##_get_nbi##GROUP(TYPE *dest, const TYPE *source, size_t nelems, int pe);        \
    NVSHMEM_DEVICE void PREFIX##_##NAME##_iput##GROUP(TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst,     \
                                                      size_t nelems, int pe);                                           \
    NVSHMEM_DEVICE void PREFIX##_##NAME##_iget##GROUP(TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst,     \
                                                      size_t nelems, int pe);                                           \
    NVSHMEM_DEVICE void PREFIX##_##NAME##_put_signal##GROUP(TYPE *dest, const TYPE *source, size_t nelems,              \
                                                            uint64_t *sig_addr, uint64_t signal, int sig_op, int pe);   \
    NVSHMEM_DEVICE void PREFIX##_##NAME##_put_signal_nbi##GROUP(TYPE *dest, const TYPE *source, size_t nelems,          \
                                                                uint64_t *sig_addr, uint64_t signal, int sig_op,        \
                                                                int pe);
#define NVSHMEM_DECLARE_SIZED(SIZE, PREFIX, GROUP)                                                                      \
    NVSHMEM_DECLARE_MEMORY(SIZE, PREFIX, GROUP)                                                                         \
    NVSHMEM_DEVICE void PREFIX##_iput##SIZE##GROUP(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,        \
                                                   size_t nelems, int pe);                                              \
    NVSHMEM_DEVICE void PREFIX##_iget##SIZE##GROUP(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,        \
                                                   size_t nelems, int pe);
#define NVSHMEM_DECLARE_MEMORY(SIZE, PREFIX, GROUP)                                                                     \
    NVSHMEM_DEVICE void PREFIX##_put##SIZE##GROUP(void *dest, const void *source, size_t nelems, int pe);               \
    NVSHMEM_DEVICE void PREFIX##_get##SIZE##GROUP(void *dest, const void *source, size_t nelems, int pe);               \
    NVSHMEM_DEVICE void PREFIX##_put##SIZE##_nbi##GROUP(void *dest, const void *source, size_t nelems, int pe);         \
    NVSHMEM_DEVICE void PREFIX##_get##SIZE##_nbi##GROUP(void *dest, const void *source, size_t nelems, int pe);         \
    NVSHMEM_DEVICE void PREFIX##_put##SIZE##_signal##GROUP(void *dest, const void *source, size_t nelems,               \
                                                           uint64_t *sig_addr, uint64_t signal, int sig_op, int pe);    \
    NVSHMEM_DEVICE void PREFIX##_put##SIZE##_signal_nbi##GROUP(void *dest, const void *source, size_t nelems,           \
                                                               uint64_t *sig_addr, uint64_t signal, int sig_op, int pe);
#define NVSHMEM_DECLARE_SIZES(PREFIX, GROUP)                                                                            \
    NVSHMEM_DECLARE_SIZED(8, PREFIX, GROUP)                                                                             \
    NVSHMEM_DECLARE_SIZED(16, PREFIX, GROUP)                                                                            \
    NVSHMEM_DECLARE_SIZED(32, PREFIX, GROUP)                                                                            \
    NVSHMEM_DECLARE_SIZED(64, PREFIX, GROUP)                                                                            \
    NVSHMEM_DECLARE_SIZED(128, PREFIX, GROUP)                                                                           \
    NVSHMEM_DECLARE_MEMORY(mem, PREFIX, GROUP) /* nelems counts bytes */
#define NVSHMEM_DECLARE_ELEMENT(NAME, TYPE, ...)                                                                        \
    NVSHMEM_DEVICE void nvshmem_##NAME##_p(TYPE *dest, TYPE value, int pe);                                             \
    NVSHMEM_DEVICE TYPE nvshmem_##NAME##_g(const TYPE *source, int pe);

NVSHMEM_TYPES_RMA(NVSHMEM_DECLARE_RMA, nvshmem, )
NVSHMEM_TYPES_RMA(NVSHMEM_DECLARE_ELEMENT, )
NVSHMEM_DECLARE_SIZES(nvshmem, )

/* Atomic memory operations. */
#define NVSHMEM_DECLARE_AMO_EXTENDED(NAME, TYPE, ...)                                                                   \
    NVSHMEM_DEVICE TYPE nvshmem_##NAME##_atomic_fetch(const TYPE *source, int pe);                                      \
    NVSHMEM_DEVICE void nvshmem_##NAME##_atomic_set(TYPE *dest, TYPE value, int pe);                                    \
    NVSHMEM_DEVICE TYPE nvshmem_##NAME##_atomic_swap(TYPE *dest, TYPE value, int pe);
#define NVSHMEM_DECLARE_AMO_STANDARD(NAME, TYPE, ...)                                                                   \
    NVSHMEM_DEVICE TYPE nvshmem_##NAME##_atomic_compare_swap(TYPE *dest, TYPE cond, TYPE value, int pe);                \
    NVSHMEM_DEVICE TYPE nvshmem_##NAME##_atomic_fetch_inc(TYPE *dest, int pe);                                          \
    NVSHMEM_DEVICE void nvshmem_##NAME##_atomic_inc(TYPE *dest, int pe);                                                \
    NVSHMEM_DEVICE TYPE nvshmem_##NAME##_atomic_fetch_add(TYPE *dest, TYPE value, int pe);                              \
    NVSHMEM_DEVICE void nvshmem_##NAME##_atomic_add(TYPE *dest, TYPE value, int pe);
#define NVSHMEM_DECLARE_AMO_BITWISE(NAME, TYPE, ...)                                                                    \
    NVSHMEM_DEVICE TYPE nvshmem_##NAME##_atomic_fetch_and(TYPE *dest, TYPE value, int pe);                              \
    NVSHMEM_DEVICE void nvshmem_##NAME##_atomic_and(TYPE *dest, TYPE value, int pe);                                    \
    NVSHMEM_DEVICE TYPE nvshmem_##NAME##_atomic_fetch_or(TYPE *dest, TYPE value, int pe);                               \
    NVSHMEM_DEVICE void nvshmem_##NAME##_atomic_or(TYPE *dest, TYPE value, int pe);                                     \
    NVSHMEM_DEVICE TYPE nvshmem_##NAME##_atomic_fetch_xor(TYPE *dest, TYPE value, int pe);                              \
    NVSHMEM_DEVICE void nvshmem_##NAME##_atomic_xor(TYPE *dest, TYPE value, int pe);

NVSHMEM_TYPES_EXTENDED_AMO(NVSHMEM_DECLARE_AMO_EXTENDED, )
NVSHMEM_TYPES_STANDARD_AMO(NVSHMEM_DECLARE_AMO_STANDARD, )
NVSHMEM_TYPES_BITWISE_AMO(NVSHMEM_DECLARE_AMO_BITWISE, )

/* Point-to-point synchronization. A null `status` waits for all; the indices that were met are the result. */
#define NVSHMEM_DECLARE_WAIT(NAME, TYPE, ...)                                                                           \
    NVSHMEM_DEVICE void nvshmem_##NAME##_wait_until(TYPE *ivar, int cmp, TYPE cmp_value);                               \
    NVSHMEM_DEVICE void nvshmem_##NAME##_wait_until_all(TYPE *ivars, size_t nelems, const int *status, int cmp,         \
                                                        TYPE cmp_value);                                                \
    NVSHMEM_DEVICE size_t nvshmem_##NAME##_wait_until_any(TYPE *ivars, size_t nelems, const int *status, int cmp,       \
                                                          TYPE cmp_value);                                              \
    NVSHMEM_DEVICE size_t nvshmem_##NAME##_wait_until_some(TYPE *ivars, size_t nelems, size_t *indices,                 \
                                                           const int *status, int cmp, TYPE cmp_value);                 \
    NVSHMEM_DEVICE void nvshmem_##NAME##_wait_until_all_vector(TYPE *ivars, size_t nelems, const int *status, int cmp,  \
                                                               TYPE *cmp_values);                                       \
    NVSHMEM_DEVICE size_t nvshmem_##NAME##_wait_until_any_vector(TYPE *ivars, size_t nelems, const int *status,         \
                                                                 int cmp, TYPE *cmp_values);                            \
    NVSHMEM_DEVICE size_t nvshmem_##NAME##_wait_until_some_vector(TYPE *ivars, size_t nelems, size_t *indices,          \
                                                                  const int *status, int cmp, TYPE *cmp_values);        \
    NVSHMEM_DEVICE int nvshmem_##NAME##_test(TYPE *ivar, int cmp, TYPE cmp_value);                                      \
    NVSHMEM_DEVICE int nvshmem_##NAME##_test_all(TYPE *ivars, size_t nelems, const int *status, int cmp,                \
                                                 TYPE cmp_value);                                                       \
    NVSHMEM_DEVICE size_t nvshmem_##NAME##_test_any(TYPE *ivars, size_t nelems, const int *status, int cmp,             \
                                                    TYPE cmp_value);                                                    \
    NVSHMEM_DEVICE size_t nvshmem_##NAME##_test_some(TYPE *ivars, size_t nelems, size_t *indices, const int *status,    \
                                                     int cmp, TYPE cmp_value);                                          \
    NVSHMEM_DEVICE int nvshmem_##NAME##_test_all_vector(TYPE *ivars, size_t nelems, const int *status, int cmp,         \
                                                        TYPE *cmp_values);                                              \
    NVSHMEM_DEVICE size_t nvshmem_##NAME##_test_any_vector(TYPE *ivars, size_t nelems, const int *status, int cmp,      \
                                                           TYPE *cmp_values);                                           \
    NVSHMEM_DEVICE size_t nvshmem_##NAME##_test_some_vector(TYPE *ivars, size_t nelems, size_t *indices,                \
                                                            const int *status, int cmp, TYPE *cmp_values);

NVSHMEM_TYPES_WAIT(NVSHMEM_DECLARE_WAIT, )

NVSHMEM_DEVICE uint64_t nvshmem_signal_fetch(uint64_t *sig_addr);
NVSHMEM_DEVICE uint64_t nvshmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value);

/* Order and completion. */
NVSHMEM_DEVICE void nvshmem_fence(void);
NVSHMEM_DEVICE void nvshmem_quiet(void);

/* Collectives. */
#define NVSHMEM_DECLARE_COLLECTIVE(NAME, TYPE, PREFIX, GROUP)                                                           \
    NVSHMEM_DEVICE int PREFIX##_##NAME##_alltoall##GROUP(nvshmem_team_t team, TYPE *dest, const TYPE *source,           \
                                                         size_t nelems);                                                \
    NVSHMEM_DEVICE int PREFIX##_##NAME##_broadcast##GROUP(nvshmem_team_t team, TYPE *dest, const TYPE *source,          \
                                                          size_t nelems, int PE_root);                                  \
    NVSHMEM_DEVICE int PREFIX##_##NAME##_fcollect##GROUP(nvshmem_team_t team, TYPE *dest, const TYPE *source,           \
                                                         size_t nelems);
#define NVSHMEM_DECLARE_REDUCTION(NAME, TYPE, OP, PREFIX, GROUP)                                                        \
    NVSHMEM_DEVICE int PREFIX##_##NAME##_##OP##_reduce##GROUP(nvshmem_team_t team, TYPE *dest, const TYPE *source,      \
                                                              size_t nreduce);                                          \
    NVSHMEM_DEVICE int PREFIX##_##NAME##_##OP##_reducescatter##GROUP(nvshmem_team_t team, TYPE *dest,                   \
                                                                     const TYPE *source, size_t nreduce);
#define NVSHMEM_DECLARE_COLLECTIVES(PREFIX, GROUP)                                                                      \
    NVSHMEM_TYPES_RMA(NVSHMEM_DECLARE_COLLECTIVE, PREFIX, GROUP)                                                        \
    NVSHMEM_DEVICE int PREFIX##_alltoallmem##GROUP(nvshmem_team_t team, void *dest, const void *source, size_t nelems); \
    NVSHMEM_DEVICE int PREFIX##_broadcastmem##GROUP(nvshmem_team_t team, void *dest, const void *source, size_t nelems, \
                                                    int PE_root);                                                       \
    NVSHMEM_DEVICE int PREFIX##_fcollectmem##GROUP(nvshmem_team_t team, void *dest, const void *source, size_t nelems); \
    NVSHMEM_TYPES_BITWISE_REDUCE(NVSHMEM_DECLARE_REDUCTION, and, PREFIX, GROUP)                                         \
    NVSHMEM_TYPES_BITWISE_REDUCE(NVSHMEM_DECLARE_REDUCTION, or, PREFIX, GROUP)                                          \
    NVSHMEM_TYPES_BITWISE_REDUCE(NVSHMEM_DECLARE_REDUCTION, xor, PREFIX, GROUP)                                         \
    NVSHMEM_TYPES_REDUCE(NVSHMEM_DECLARE_REDUCTION, max, PREFIX, GROUP)                                                 \
    NVSHMEM_TYPES_REDUCE(NVSHMEM_DECLARE_REDUCTION, min, PREFIX, GROUP)                                                 \
    NVSHMEM_TYPES_REDUCE(NVSHMEM_DECLARE_REDUCTION, sum, PREFIX, GROUP)                                                 \
    NVSHMEM_TYPES_REDUCE(NVSHMEM_DECLARE_REDUCTION, prod, PREFIX, GROUP)

NVSHMEM_DECLARE_COLLECTIVES(nvshmem, )

NVSHMEM_DEVICE int nvshmem_barrier(nvshmem_team_t team);
NVSHMEM_DEVICE void nvshmem_barrier_all(void);
NVSHMEM_DEVICE int nvshmem_team_sync(nvshmem_team_t team);
#define nvshmem_sync nvshmem_team_sync
NVSHMEM_DEVICE void nvshmem_sync_all(void);

#endif
