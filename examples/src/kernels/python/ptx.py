"""What the scripts beside this one share: they write the PTX that a front end makes of a kernel, without a GPU."""

import pathlib
import re
import sys


def emit(front, kernels):
    """Writes FRONT.KERNEL.ptx of each kernel into the folder that the command line names, or beside this file."""
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    folder = folder if folder.is_dir() else folder.parent
    for name, text in kernels.items():
        (folder / f"{front}.{name}.ptx").write_text(tidied(text, name.partition(".")[0]))


def tidied(text, name):
    """The text with a short name of its one kernel, without the folder of its source, and without debug information but lines, and the
    names of functions that they need: without those ptxas does not assemble it."""
    names = re.search(r"^\s*\.section\s+\.debug_str\s*\{.*?\}\n", text, re.MULTILINE | re.DOTALL)
    names = names[0] if names and "function_name" in text else ""
    text = text[:text.find("\t.section")] + names if "\t.section" in text else text
    (mangled,) = re.findall(r"^\.visible \.entry (\w+)\(", text, re.MULTILINE)
    text = re.sub(rf"\b{mangled}(?=\b|_param_)", name, text)
    text = re.sub(r'(\.file\s+\d+ )"[^"]*/', r'\1"', text)
    # Numba declares functions and variables in no fixed order.
    for declared in (r"^\.extern \.func .*?^;\n", r"^\.common .*?;\n"):
        declared = re.compile(declared, re.MULTILINE | re.DOTALL)
        declarations = iter(sorted(declared.findall(text)))
        text = declared.sub(lambda _: next(declarations), text)
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n"
