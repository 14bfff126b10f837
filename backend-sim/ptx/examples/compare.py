#!/usr/bin/env python3
"""Runs the kernels that the example `compare` wrote on a GPU, and compares with what the interpreter gave.

usage: compare.py FOLDER [--json FILE] [--unoptimized]

Needs NVIDIA's driver, nothing else. Prints for each instruction that differed how often, and the first case with its operands' line;
exits with status 1 if one did. Of an instruction whose operands already differ, nothing is said.

--json writes a report. --unoptimized has the driver translate one instruction after the other: what differs only without it comes of the driver's optimizer.
Only then, kernels with products of warp groups (wgmma) are run: the optimizer of driver 580.159 crashes on some, and in others changes what was computed before.
"""

import argparse
import collections
import ctypes
import datetime
import glob
import json
import os
import re
import struct
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--json")
    parser.add_argument("--unoptimized", action="store_true")
    arguments = parser.parse_args()
    folder = arguments.folder
    cuda = ctypes.CDLL("libcuda.so.1")

    def check(code, what):
        if code:
            text = ctypes.c_char_p()
            cuda.cuGetErrorString(code, ctypes.byref(text))
            sys.exit(f"{what}: {text.value.decode() if text.value else code}")

    check(cuda.cuInit(0), "cuInit")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")

    cases, different, examples = 0, collections.Counter(), {}
    refused, left_out = [], 0
    for path in sorted(glob.glob(os.path.join(folder, "*.ptx"))):
        name = os.path.splitext(os.path.basename(path))[0]
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if "wgmma" in text and not arguments.unoptimized:
            left_out += 1
            continue
        with open(path[:-4] + ".in", "rb") as file:
            inputs = file.read()
        with open(path[:-4] + ".out", "rb") as file:
            ours = file.read()
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        log = ctypes.create_string_buffer(4096)
        options = (ctypes.c_int * 3)(5, 6, 7)  # CU_JIT_ERROR_LOG_BUFFER, …_SIZE_BYTES, CU_JIT_OPTIMIZATION_LEVEL
        level = 0 if arguments.unoptimized else 4
        values = (ctypes.c_void_p * 3)(ctypes.cast(log, ctypes.c_void_p), ctypes.c_void_p(len(log)), level)
        if cuda.cuModuleLoadDataEx(ctypes.byref(module), text.encode() + b"\0", 3, options, values):
            refused.append(f"{name}: {log.value.decode(errors='replace').strip().splitlines()[:2]}")
            continue
        check(cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()), name)
        source, target = ctypes.c_uint64(), ctypes.c_uint64()
        check(cuda.cuMemAlloc_v2(ctypes.byref(source), len(inputs)), "cuMemAlloc")
        check(cuda.cuMemAlloc_v2(ctypes.byref(target), len(ours)), "cuMemAlloc")
        check(cuda.cuMemcpyHtoD_v2(source, inputs, len(inputs)), "cuMemcpyHtoD")
        parameters = (ctypes.c_void_p * 2)(ctypes.cast(ctypes.byref(target), ctypes.c_void_p), ctypes.cast(ctypes.byref(source), ctypes.c_void_p))
        threads = int(re.search(r"^\.reqntid (\d+)$", text, re.M)[1])
        check(cuda.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, None, parameters, None), name)
        check(cuda.cuCtxSynchronize(), name)
        theirs = ctypes.create_string_buffer(len(ours))
        check(cuda.cuMemcpyDtoH_v2(theirs, target, len(ours)), "cuMemcpyDtoH")
        for memory in (source, target):
            cuda.cuMemFree_v2(memory)
        cuda.cuModuleUnload(module)

        steps = re.findall(r"st\.global\.u64 .*; // (\S+) (.*)$", text, re.M)
        count = len(steps)
        for thread in range(threads):
            tainted = set()
            for step, (form, operands) in enumerate(steps):
                at = (thread * count + step) * 8
                (mine,), (gpu,) = struct.unpack_from("<Q", ours, at), struct.unpack_from("<Q", theirs.raw, at)
                registers = operands.split(", ")
                if tainted & set(registers[1:]):
                    tainted.add(registers[0])
                    continue
                cases += 1
                if mine != gpu:
                    tainted.add(registers[0])
                    different[form] += 1
                    example = {"kernel": name, "thread": thread, "text": f"{form} {operands}", "here": hex(mine), "gpu": hex(gpu)}
                    examples.setdefault(form, example)
    for form, count in different.most_common():
        example = examples[form]
        print(f"{count:6} {example['kernel']}, thread {example['thread']}: {example['text']}: {example['here']} here, {example['gpu']} on the GPU")
    for line in refused:
        print("not compiled:", line)
    if left_out:
        print(f"{left_out} kernels with wgmma were left out: they run with --unoptimized")
    print(f"{cases} instruction cases compared, {sum(different.values())} differ in {len(different)} forms, {len(refused)} kernels not compiled")
    if arguments.json:
        write_report(arguments, cuda, device, cases, different, examples, left_out)
    sys.exit(1 if different or refused else 0)


def write_report(arguments, cuda, device, cases, different, examples, left_out):
    name, version = ctypes.create_string_buffer(100), ctypes.c_int()
    cuda.cuDeviceGetName(name, len(name), device)
    cuda.cuDriverGetVersion(ctypes.byref(version))
    with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
        driver = re.search(r"  (\d+\.[\d.]+)  ", file.readline())
    report = {
        "schema": "onesided-ptx-compare/1",
        "date": datetime.date.today().isoformat(),
        "gpu": name.value.decode(),
        "driver": driver[1] if driver else "unknown",
        "cuda": f"{version.value // 1000}.{version.value % 1000 // 10}",
        "optimized": not arguments.unoptimized,
        "kernels": len(glob.glob(os.path.join(arguments.folder, "*.ptx"))),
        "left_out": left_out,
        "cases": cases,
        "differ": sum(different.values()),
        "forms": [{"times": count, "instruction": form, "example": examples[form]} for form, count in different.most_common()],
    }
    with open(arguments.json, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
        file.write("\n")


main()
