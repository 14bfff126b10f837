"""Kernels in Triton, which call NVSHMEM by `extern_elementwise`, as PyTorch's symmetric memory does.

Pointers are passed as integers, and every call has a result, as Triton knows no other calls. All threads of a program make each call.
"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDABackend
from triton.compiler import ASTSource
from triton.language import core

import ptx

I32, I64, U64 = (core.dtype(name) for name in ("int32", "int64", "uint64"))
SET = tl.constexpr(9)  # NVSHMEM_SIGNAL_SET
EQUAL = tl.constexpr(0)  # NVSHMEM_CMP_EQ


def call(name, types, arguments, semantic, result=I32):
    return core.extern_elementwise("", "", arguments, {types: (name, result)}, is_pure=False, _semantic=semantic)


@core.extern
def my_pe(_semantic=None):
    return call("nvshmem_my_pe", (), [], _semantic)


@core.extern
def n_pes(_semantic=None):
    return call("nvshmem_n_pes", (), [], _semantic)


@core.extern
def p(dest, value, pe, _semantic=None):
    return call("nvshmem_int_p", (I64, I32, I32), [dest, value, pe], _semantic)


@core.extern
def putmem(dest, source, size, pe, _semantic=None):
    return call("nvshmemx_putmem_block", (I64, I64, I64, I32), [dest, source, size, pe], _semantic)


@core.extern
def putmem_signal(dest, source, size, signal, value, op, pe, _semantic=None):
    types = (I64, I64, I64, I64, I64, I32, I32)
    return call("nvshmemx_putmem_signal_block", types, [dest, source, size, signal, value, op, pe], _semantic)


@core.extern
def signal_op(signal, value, op, pe, _semantic=None):
    return call("nvshmemx_signal_op", (I64, I64, I32, I32), [signal, value, op, pe], _semantic)


@core.extern
def signal_wait_until(signal, comparison, value, _semantic=None):
    """A loop of `tl.atomic_add` is none in its place: over a network, only NVSHMEM's waits show the data that came before the signal."""
    return call("nvshmem_signal_wait_until", (I64, I32, I64), [signal, comparison, value], _semantic, result=U64)


@core.extern
def barrier_all(_semantic=None):
    return call("nvshmemx_barrier_all_block", (), [], _semantic)


@core.extern
def sync_all(_semantic=None):
    return call("nvshmemx_sync_all_block", (), [], _semantic)


@triton.jit
def ring(dst, src, out, signal, n, BLOCK: tl.constexpr):
    """Data and a signal to the next PE; adds what comes from the one before."""
    to = (my_pe() + 1) % n_pes()
    size = n.to(tl.int64) * 4
    one = tl.full((), 1, tl.int64)
    putmem_signal(dst.to(tl.int64), src.to(tl.int64), size, signal.to(tl.int64), one, SET, to)
    signal_wait_until(signal.to(tl.int64), EQUAL, one)
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(src + i, mask=i < n) + tl.load(dst + i, mask=i < n), mask=i < n)


@triton.jit
def ring_broken(dst, src, out, signal, n, BLOCK: tl.constexpr):
    """The signal can overtake the data: a fence is missing."""
    to = (my_pe() + 1) % n_pes()
    size = n.to(tl.int64) * 4
    one = tl.full((), 1, tl.int64)
    putmem(dst.to(tl.int64), src.to(tl.int64), size, to)
    signal_op(signal.to(tl.int64), one, SET, to)
    signal_wait_until(signal.to(tl.int64), EQUAL, one)
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(src + i, mask=i < n) + tl.load(dst + i, mask=i < n), mask=i < n)


@triton.jit
def exchange(dst, src, out, BLOCK: tl.constexpr):
    """A block of `src` to each PE, one element by each thread; sums what all have sent."""
    i = tl.arange(0, BLOCK)
    mine = dst + my_pe() * BLOCK + i
    for pe in range(n_pes()):
        p(mine.to(tl.int64), tl.load(src + pe * BLOCK + i), pe)
    tl.debug_barrier()
    barrier_all()
    total = tl.zeros((BLOCK,), tl.int32)
    for pe in range(n_pes()):
        total += tl.load(dst + pe * BLOCK + i)
    tl.store(out + i, total)


@triton.jit
def exchange_broken(dst, src, out, BLOCK: tl.constexpr):
    """Sums what may not have arrived: a sync completes nothing."""
    i = tl.arange(0, BLOCK)
    mine = dst + my_pe() * BLOCK + i
    for pe in range(n_pes()):
        p(mine.to(tl.int64), tl.load(src + pe * BLOCK + i), pe)
    tl.debug_barrier()
    sync_all()
    total = tl.zeros((BLOCK,), tl.int32)
    for pe in range(n_pes()):
        total += tl.load(dst + pe * BLOCK + i)
    tl.store(out + i, total)


class Stop(Exception):
    """The PTX, taken before it is assembled: that would want the definitions of NVSHMEM's functions."""


def stop(backend, text, metadata, *_):
    raise Stop(text)


def compiled(kernel, signature, block):
    source = ASTSource(kernel, {**signature, "BLOCK": "constexpr"}, {"BLOCK": block})
    try:
        triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 1})
    except Stop as stopped:
        return stopped.args[0]
    raise RuntimeError("Triton took the PTX from a cache: empty it")


if __name__ == "__main__":
    CUDABackend.make_cubin = stop
    arrays = {"dst": "*i32", "src": "*i32", "out": "*i32"}
    signals = {**arrays, "signal": "*i64", "n": "i32"}
    ptx.emit("triton", {
        "ring": compiled(ring, signals, 32),
        "ring.broken": compiled(ring_broken, signals, 32),
        "exchange": compiled(exchange, arrays, 32),
        "exchange.broken": compiled(exchange_broken, arrays, 32),
    })
