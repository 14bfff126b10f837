#!/usr/bin/env python3
"""Compiles the CUDA C++ files beside it, and those of the examples, of their bugs and of the suite, to PTX with NVRTC, which needs no GPU and no toolkit.

usage: compile.py LIBRARY [--include FOLDER]... [--check | FILE...]

LIBRARY is libnvrtc.so. With --check, nothing is written: the exit status says whether the PTX files are what the sources give.
A source that has a broken twin (`#ifdef BROKEN`) gives a second file: NAME.broken.ptx.
"""

import argparse
import ctypes
import difflib
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "../../.."))
FOLDERS = [HERE, os.path.join(ROOT, "examples/src/kernels"), os.path.join(ROOT, "conformance/src/suite/device"), os.path.join(ROOT, "examples/src/bugs/kernels")]
# Products of warp groups are of this one architecture.
ARCHITECTURES = {"wgmma.cu": "compute_90a"}
OPTIONS = ["-rdc=true", "-std=c++17", "-lineinfo", "--device-int128"]


def compile_file(nvrtc, path, includes, defines):
    """The PTX of one file. Its `.file` directives name the source without a folder, so that every machine writes the same."""

    def check(code, program=None):
        if code == 0:
            return
        log = ""
        if program is not None:
            size = ctypes.c_size_t()
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            text = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, text)
            log = text.value.decode()
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        sys.exit(f"{path}: {nvrtc.nvrtcGetErrorString(code).decode()}\n{log}")

    with open(path, encoding="utf-8") as file:
        source = file.read()
    program = ctypes.c_void_p()
    name = os.path.basename(path).encode()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name, 0, None, None))
    architecture = "--gpu-architecture=" + ARCHITECTURES.get(os.path.basename(path), "compute_90")
    options = [option.encode() for option in [architecture] + OPTIONS + defines + [f"-I{folder}" for folder in includes]]
    check(nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)), program)
    size = ctypes.c_size_t()
    check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetPTX(program, text))
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return portable(text.value.decode(), includes)


def portable(ptx, includes):
    """Leaves out the folders of this machine, also in strings (`__FILE__`), and white space at the ends of lines."""
    folders = [folder.rstrip("/") + "/" for folder in sorted([os.getcwd(), *includes], key=len, reverse=True)]

    def string(found):
        """A string's size, which counts the zero at its end, and its bytes, which leave that zero out."""
        size, old = int(found[2]), bytes(int(byte) for byte in found[3].split(", "))
        new = old
        for folder in folders:
            new = new.replace(folder.encode(), b"")
        return f"{found[1]}[{size - len(old) + len(new)}] = {{{', '.join(map(str, new))}}};"

    ptx = re.sub(r"(\.b8 \S+)\[(\d+)\] = \{([\d, ]+)\};", string, ptx)
    for folder in folders:
        ptx = ptx.replace(folder, "")
    return "".join(line.rstrip() + "\n" for line in ptx.rstrip("\n\0").split("\n"))


def twins(path):
    """What a source gives: the end of the file's name, and options."""
    yield path, ".ptx", []
    with open(path, encoding="utf-8") as file:
        if re.search(r"^#ifn?def BROKEN$", file.read(), re.MULTILINE):
            yield path, ".broken.ptx", ["-DBROKEN"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("library")
    arguments.add_argument("--include", action="append", default=[])
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("files", nargs="*")
    arguments = arguments.parse_intermixed_args()

    for name in sorted(os.listdir(os.path.dirname(os.path.abspath(arguments.library)))):
        if name.startswith("libnvrtc-builtins.so"): # NVRTC opens it by name only; once it is loaded, that succeeds
            ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(arguments.library)), name), ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(arguments.library)
    includes = [os.path.join(ROOT, "api/compile/include")] + [os.path.abspath(folder) for folder in arguments.include]
    files = arguments.files or sorted(
        os.path.join(folder, name) for folder in FOLDERS for name in os.listdir(folder) if name.endswith(".cu")
    )
    different = 0
    for path, suffix, defines in (twin for path in files for twin in twins(path)):
        target = os.path.splitext(path)[0] + suffix
        ptx = compile_file(nvrtc, path, [*includes, os.path.dirname(os.path.abspath(path))], defines)
        if not arguments.check:
            with open(target, "w", encoding="utf-8") as file:
                file.write(ptx)
            continue
        with open(target, encoding="utf-8") as file:
            old = file.read()
        if old != ptx:
            different += 1
            diff = difflib.unified_diff(old.split("\n"), ptx.split("\n"), target, "what the source gives", lineterm="", n=1)
            print("\n".join(list(diff)[:40]))
    sys.exit(1 if different else 0)


main()
