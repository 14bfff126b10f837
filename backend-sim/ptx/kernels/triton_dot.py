"""A product of matrices in Triton: `tl.dot`, which copies tiles ahead and multiplies them on tensor cores, of warps or of warp groups. `ci/python-kernels` runs it.

The kernel wants as much shared memory as `SHARED` says; a launch gives it. Triton adds two pointers to its parameters, which it does not use.
"""

import pathlib
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDABackend
from triton.compiler import ASTSource

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "examples/src/kernels/python"))
import ptx

BLOCK = (64, 64, 32)
SHARED = {"dot.f16": 16384, "dot.s8": 8192, "wgmma.f16": 49152, "wgmma.e4m3": 16384, "wgmma.s8": 16384}


@triton.jit
def dot(d, a, b, columns, depth, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    """Each program makes 64 × 64 elements of d = a × b."""
    across = columns // COLUMNS
    row = tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)
    k = tl.arange(0, DEPTH)
    total = tl.zeros((ROWS, COLUMNS), d.dtype.element_ty)
    for step in range(0, depth, DEPTH):
        left = tl.load(a + row[:, None] * depth + (step + k)[None, :])
        right = tl.load(b + (step + k)[:, None] * columns + column[None, :])
        total = tl.dot(left, right, total, out_dtype=d.dtype.element_ty)
    tl.store(d + row[:, None] * columns + column[None, :], total)


class Stop(Exception):
    """The PTX, and what Triton says of it."""


def stop(backend, text, metadata, *_):
    raise Stop(text, metadata["shared"])


def compiled(name, factor, result, capability, block):
    signature = {"d": f"*{result}", "a": f"*{factor}", "b": f"*{factor}", "columns": "i32", "depth": "i32"}
    sizes = dict(zip(("ROWS", "COLUMNS", "DEPTH"), block))
    # Pointers and sizes are multiples of 16, so that Triton copies 16 bytes at once.
    divisible = {(place,): [["tt.divisibility", 16]] for place in range(len(signature))}
    source = ASTSource(dot, {**signature, **dict.fromkeys(sizes, "constexpr")}, sizes, divisible)
    try:
        triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4, "num_stages": 3})
    except Stop as stopped:
        text, shared = stopped.args
        if shared != SHARED[name]:
            raise RuntimeError(f"{name} wants {shared} bytes of shared memory") from None
        return text
    raise RuntimeError("Triton took the PTX from a cache: empty it")


if __name__ == "__main__":
    CUDABackend.make_cubin = stop
    # The tensor cores of Ampere, which Hopper has as well; and Hopper's own.
    kinds = {"f16": ("fp16", "fp32"), "s8": ("i8", "i32"), "e4m3": ("fp8e4nv", "fp32")}
    versions = {"dot": (80, BLOCK), "wgmma": (90, (64, 64, 64))}
    made = {name: compiled(name, *kinds[name.split(".")[1]], *versions[name.split(".")[0]]) for name in SHARED}
    ptx.emit("triton", made)
