#!/usr/bin/env python3
"""Compares the device functions that our nvshmem.h declares with the genuine headers: names, types of parameters and results.

usage: compare.py OURS GENUINE [INCLUDE]...     (folders; needs a C++ compiler)
"""

import re
import subprocess
import sys

# Functions of the host, of streams, and of families that our header leaves out.
LEFT_OUT = re.compile(
    r"_on_stream$|_(init|finalize|malloc|calloc|align|free|query_thread|create)$|^nvshmemx?_(init|hostlib|cumodule|culibrary"
    r"|buffer|set_attr|get_uniqueid|collective_launch|region_(start|stop)$|status_string|team_(split|destroy|get|init))"
)
PROTOTYPE = re.compile(r"((?:[\w*]+\s+)+\**)(nvshmemx?_\w+)\s*\(([^()]*)\)\s*[;{]")
# The same type under another name, once macros are expanded.
SAME = {"half": "__half", "nv_bfloat16": "__nv_bfloat16"}


def parameters(text):
    """The types of the parameters, without names."""
    types = []
    for parameter in text.split(","):
        words = re.findall(r"\w+|\*", parameter)
        if words in ([], ["void"]):
            continue
        # The last word is the name, where a type stands before it.
        if words[-1] != "*" and len([word for word in words if word != "const"]) > 1 and words[-1] not in BASIC:
            words = words[:-1]
        pointer = words.count("*")
        # A parameter's own `const` is no part of the type of the function.
        if not pointer:
            words = [word for word in words if word != "const"]
        types.append(" ".join(SAME.get(word, word) for word in words))
    return tuple(types)


BASIC = {"int", "char", "short", "long", "float", "double", "unsigned", "signed"}


def functions(folder, includes):
    """Name and the forms that it is declared in: result and types of parameters."""
    command = ["c++", "-E", "-P", "-x", "c++", "-std=c++17", "-D__CUDACC__", "-D__CUDA_ARCH__=900", "-D__NVCC__"]
    command += ["-D__CUDACC_VER_MAJOR__=13", "-D__CUDACC_VER_MINOR__=0", "-DNVSHMEM_CFT_HANDLES_SUPPORT", "-I", folder]
    for include in includes:
        command += ["-isystem", include]
    text = subprocess.run(
        command + ["-"], input="#include <nvshmem.h>\n#include <nvshmemx.h>\n", capture_output=True, text=True, check=True
    ).stdout
    found = {}
    for result, name, arguments in PROTOTYPE.findall(text):
        result = [SAME.get(word, word) for word in re.findall(r"\w+|\*", result)]
        result = [word for word in result if word not in ("extern", "C", "static", "inline", "__device__", "__host__", "return", "else")]
        result = [word for word in result if not word.startswith(("__attribute", "__forceinline", "__inline", "__noinline"))]
        if result:
            found.setdefault(name, set()).add((" ".join(result), parameters(arguments)))
    return found


def main():
    ours_folder, genuine_folder, *includes = sys.argv[1:]
    ours, genuine = functions(ours_folder, includes), functions(genuine_folder, includes)
    wrong = [f"{name} is not declared here" for name in genuine if name not in ours and not LEFT_OUT.search(name)]
    for name, forms in ours.items():
        if name not in genuine:
            wrong.append(f"{name} is declared here only")
        elif not forms & genuine[name]:
            wrong.append(f"{name} is {sorted(forms)} here, and {sorted(genuine[name])} there")
    print("\n".join(sorted(wrong)[:40]))
    print(f"{len(ours)} functions of nvshmem.h compared, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


main()
