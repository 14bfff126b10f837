"""Kernels in Numba, which call NVSHMEM by its names in C.

In Numba's convention the result of a declared function goes where its first argument points to, and a status is returned.
"""

import cffi
from numba import cuda, types

import ptx

I32, U64 = types.int32, types.uint64
INTS, SIGNAL = types.CPointer(I32), types.CPointer(U64)
EQ, SET = 0, 9  # NVSHMEM_CMP_EQ, NVSHMEM_SIGNAL_SET
ffi = cffi.FFI()

my_pe = cuda.declare_device("nvshmem_my_pe", I32())
n_pes = cuda.declare_device("nvshmem_n_pes", I32())
p = cuda.declare_device("nvshmem_int_p", types.void(INTS, I32, I32))
put = cuda.declare_device("nvshmemx_int_put_block", types.void(INTS, INTS, U64, I32))
put_signal = cuda.declare_device(
    "nvshmemx_int_put_signal_block", types.void(INTS, INTS, U64, SIGNAL, U64, I32, I32)
)
signal_op = cuda.declare_device("nvshmemx_signal_op", types.void(SIGNAL, U64, I32, I32))
signal_wait = cuda.declare_device("nvshmem_signal_wait_until", U64(SIGNAL, I32, U64))
barrier_all = cuda.declare_device("nvshmemx_barrier_all_block", types.void())
sync_all = cuda.declare_device("nvshmemx_sync_all_block", types.void())


def ring(dst, src, out, signal):
    """Data and a signal to the next PE; adds what comes from the one before."""
    to = (my_pe() + 1) % n_pes()
    put_signal(ffi.from_buffer(dst), ffi.from_buffer(src), src.size, ffi.from_buffer(signal), 1, SET, to)
    if cuda.threadIdx.x == 0:
        signal_wait(ffi.from_buffer(signal), EQ, 1)
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, src.size, cuda.blockDim.x):
        out[i] = src[i] + dst[i]


def ring_broken(dst, src, out, signal):
    """The signal can overtake the data: a fence is missing."""
    to = (my_pe() + 1) % n_pes()
    put(ffi.from_buffer(dst), ffi.from_buffer(src), src.size, to)
    if cuda.threadIdx.x == 0:
        signal_op(ffi.from_buffer(signal), 1, SET, to)
        signal_wait(ffi.from_buffer(signal), EQ, 1)
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, src.size, cuda.blockDim.x):
        out[i] = src[i] + dst[i]


def exchange(dst, src, out):
    """Element by element, a block of `src` to each PE; sums what all have sent."""
    n = out.size
    for i in range(cuda.threadIdx.x, src.size, cuda.blockDim.x):
        p(ffi.from_buffer(dst[my_pe() * n + i % n :]), src[i], i // n)
    cuda.syncthreads()
    barrier_all()
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        total = 0
        for pe in range(n_pes()):
            total += dst[pe * n + i]
        out[i] = total


def exchange_broken(dst, src, out):
    """Sums what may not have arrived: a sync completes nothing."""
    n = out.size
    for i in range(cuda.threadIdx.x, src.size, cuda.blockDim.x):
        p(ffi.from_buffer(dst[my_pe() * n + i % n :]), src[i], i // n)
    cuda.syncthreads()
    sync_all()
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        total = 0
        for pe in range(n_pes()):
            total += dst[pe * n + i]
        out[i] = total


def compiled(kernel, *arguments):
    signature = types.void(*(types.Array(element, 1, "C") for element in arguments))
    text, _ = cuda.compile(kernel, signature, cc=(9, 0), device=False, abi="numba", output="ptx", lineinfo=True)
    return text


if __name__ == "__main__":
    ptx.emit("numba", {
        "ring": compiled(ring, I32, I32, I32, U64),
        "ring.broken": compiled(ring_broken, I32, I32, I32, U64),
        "exchange": compiled(exchange, I32, I32, I32),
        "exchange.broken": compiled(exchange_broken, I32, I32, I32),
    })
