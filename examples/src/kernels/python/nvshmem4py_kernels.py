"""Kernels in Numba with NVSHMEM4Py's device functions.

Their calls have names such as `_Z24nvshmemx_int32_put_block_nbst`, and every argument is passed by its address.
"""

import types as python_types

import numba.cuda.dispatcher
import nvshmem.core.device.numba as nvshmem
from numba import cuda, types
from nvshmem.core import ComparisonType, SignalOp

import ptx

# Its functions are compiled for the current device; there is none here.
numba.cuda.dispatcher.get_current_device = lambda: python_types.SimpleNamespace(compute_capability=(9, 0))

I32, U64 = types.int32, types.uint64


def ring(dst, src, out, signal):
    """Data and a signal to the next PE; adds what comes from the one before."""
    to = (nvshmem.my_pe() + 1) % nvshmem.n_pes()
    nvshmem.put_signal_block(dst, src, signal, 1, SignalOp.SIGNAL_SET, to)
    if cuda.threadIdx.x == 0:
        nvshmem.signal_wait(signal, ComparisonType.CMP_EQ, 1)
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, src.size, cuda.blockDim.x):
        out[i] = src[i] + dst[i]


def ring_broken(dst, src, out, signal):
    """The signal can overtake the data: a fence is missing."""
    to = (nvshmem.my_pe() + 1) % nvshmem.n_pes()
    nvshmem.put_block(dst, src, to)
    if cuda.threadIdx.x == 0:
        nvshmem.signal_op(signal, 1, SignalOp.SIGNAL_SET, to)
        nvshmem.signal_wait(signal, ComparisonType.CMP_EQ, 1)
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, src.size, cuda.blockDim.x):
        out[i] = src[i] + dst[i]


def exchange(dst, src, out):
    """A block of `src` to each PE; sums what all have sent."""
    me, n = nvshmem.my_pe(), out.size
    for pe in range(nvshmem.n_pes()):
        nvshmem.put_nbi_block(dst[me * n : (me + 1) * n], src[pe * n : (pe + 1) * n], pe)
    nvshmem.barrier_all_block()
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        total = 0
        for pe in range(nvshmem.n_pes()):
            total += dst[pe * n + i]
        out[i] = total


def exchange_broken(dst, src, out):
    """Sums what may not have arrived: a sync completes nothing."""
    me, n = nvshmem.my_pe(), out.size
    for pe in range(nvshmem.n_pes()):
        nvshmem.put_nbi_block(dst[me * n : (me + 1) * n], src[pe * n : (pe + 1) * n], pe)
    nvshmem.sync_all_block()
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        total = 0
        for pe in range(nvshmem.n_pes()):
            total += dst[pe * n + i]
        out[i] = total


def compiled(kernel, *arguments):
    signature = types.void(*(types.Array(element, 1, "C") for element in arguments))
    text, _ = cuda.compile(kernel, signature, cc=(9, 0), device=False, abi="numba", output="ptx", lineinfo=True)
    return text


if __name__ == "__main__":
    ptx.emit("nvshmem4py", {
        "ring": compiled(ring, I32, I32, I32, U64),
        "ring.broken": compiled(ring_broken, I32, I32, I32, U64),
        "exchange": compiled(exchange, I32, I32, I32),
        "exchange.broken": compiled(exchange_broken, I32, I32, I32),
    })
