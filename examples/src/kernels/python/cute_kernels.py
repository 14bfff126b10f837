"""Kernels in CuTe DSL with NVSHMEM4Py's device functions. A tensor is a structure: a pointer and the shape."""

import os
import pathlib
import sys
import tempfile
import types

dump = tempfile.TemporaryDirectory()
os.environ.update(CUTE_DSL_ARCH="sm_90a", CUTE_DSL_KEEP="ptx", CUTE_DSL_DUMP_DIR=dump.name, CUTE_DSL_LINEINFO="1")
# The calls stay calls: NVSHMEM's bitcode is not linked in.
sys.modules["nvshmem.bindings.device.cute._bitcode"] = types.SimpleNamespace(NVSHMEM_DEVICE_BITCODE=None)

import cutlass  # noqa: E402
import nvshmem.core.device.cute as nvshmem  # noqa: E402
from cutlass import cute  # noqa: E402
from cutlass.base_dsl.compiler import CompilerDiagnosticError  # noqa: E402
from cutlass.cute.runtime import make_fake_compact_tensor  # noqa: E402

import ptx  # noqa: E402

EQ, SET = cutlass.Int32(0), cutlass.Int32(9)  # NVSHMEM_CMP_EQ, NVSHMEM_SIGNAL_SET


@cute.kernel
def ring(dst: cute.Tensor, src: cute.Tensor, out: cute.Tensor, signal: cute.Tensor):
    """Data and a signal to the next PE; adds what comes from the one before."""
    thread, _, _ = cute.arch.thread_idx()
    to = (nvshmem.my_pe() + 1) % nvshmem.n_pes()
    nvshmem.put_signal_block(dst, src, signal, 1, 9, to)
    if thread == 0:
        nvshmem.signal_wait(signal, 0, 1)
    cute.arch.sync_threads()
    if thread < cute.size(src):
        out[thread] = src[thread] + dst[thread]


@cute.kernel
def ring_broken(dst: cute.Tensor, src: cute.Tensor, out: cute.Tensor, signal: cute.Tensor):
    """The signal can overtake the data: a fence is missing."""
    thread, _, _ = cute.arch.thread_idx()
    to = (nvshmem.my_pe() + 1) % nvshmem.n_pes()
    nvshmem.put_block(dst, src, to)
    if thread == 0:
        nvshmem.signal_op(signal, 1, 9, to)
        nvshmem.signal_wait(signal, 0, 1)
    cute.arch.sync_threads()
    if thread < cute.size(src):
        out[thread] = src[thread] + dst[thread]


@cute.kernel
def exchange(dst: cute.Tensor, src: cute.Tensor, out: cute.Tensor):
    """A block of `src` to each PE; sums what all have sent."""
    thread, _, _ = cute.arch.thread_idx()
    n = cute.size(out)
    me = nvshmem.my_pe()
    for pe in range(nvshmem.n_pes()):
        to = cute.make_tensor(dst.iterator + me * n, out.layout)
        mine = cute.make_tensor(src.iterator + pe * n, out.layout)
        nvshmem.put_nbi_block(to, mine, pe)
    nvshmem.barrier_all_block()
    if thread < n:
        total = cutlass.Int32(0)
        for pe in range(nvshmem.n_pes()):
            total += dst[pe * n + thread]
        out[thread] = total


@cute.kernel
def exchange_broken(dst: cute.Tensor, src: cute.Tensor, out: cute.Tensor):
    """Sums what may not have arrived: a sync completes nothing."""
    thread, _, _ = cute.arch.thread_idx()
    n = cute.size(out)
    me = nvshmem.my_pe()
    for pe in range(nvshmem.n_pes()):
        to = cute.make_tensor(dst.iterator + me * n, out.layout)
        mine = cute.make_tensor(src.iterator + pe * n, out.layout)
        nvshmem.put_nbi_block(to, mine, pe)
    nvshmem.sync_all_block()
    if thread < n:
        total = cutlass.Int32(0)
        for pe in range(nvshmem.n_pes()):
            total += dst[pe * n + thread]
        out[thread] = total


def compiled(kernel, *elements):
    @cute.jit
    def launch(*tensors: cute.Tensor):
        kernel(*tensors).launch(grid=[1, 1, 1], block=[32, 1, 1])

    tensors = [make_fake_compact_tensor(element, (cute.sym_int(),)) for element in elements]
    folder = pathlib.Path(dump.name)
    for old in folder.glob("*.ptx"):
        old.unlink()
    try:
        cute.compile(launch, *tensors)
    except CompilerDiagnosticError as why:  # it was written before it was assembled, which wants NVSHMEM's functions
        if "Unresolved extern function" not in str(why):
            raise
    (written,) = folder.glob("*.ptx")
    return written.read_text()


if __name__ == "__main__":
    I32, U64 = cutlass.Int32, cutlass.Uint64
    ptx.emit("cute", {
        "ring": compiled(ring, I32, I32, I32, U64),
        "ring.broken": compiled(ring_broken, I32, I32, I32, U64),
        "exchange": compiled(exchange, I32, I32, I32),
        "exchange.broken": compiled(exchange_broken, I32, I32, I32),
    })
