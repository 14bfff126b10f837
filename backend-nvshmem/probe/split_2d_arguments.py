#!/usr/bin/env python3
"""Which arguments does NVSHMEM4Py's team_split_2d pass to C? Needs no GPU: the function is one that writes them down.

    python3 -m venv env && env/bin/pip install nvshmem4py-cu13 && env/bin/python probe/split_2d_arguments.py

The stand-in is loaded before the library, so that NVSHMEM4Py, which looks functions up by name, finds it.
"""

import ctypes
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile

ARGUMENTS = ("parent", "xrange", "xaxis_config", "xaxis_mask", "xaxis_team", "yaxis_config", "yaxis_mask", "yaxis_team")

STAND_IN = """
int nvshmem_team_n_pes(int team) { (void)team; return 2; }
long passed[8];
int nvshmem_team_split_2d(int parent, int xrange, const void *xaxis_config, long xaxis_mask, int *xaxis_team,
                          const void *yaxis_config, long yaxis_mask, int *yaxis_team) {
    long all[8] = {parent, xrange, (long)xaxis_config, xaxis_mask, (long)xaxis_team, (long)yaxis_config, yaxis_mask,
                   (long)yaxis_team};
    for (int i = 0; i < 8; i++) passed[i] = all[i];
    return 0;
}
"""


def stand_in(folder):
    source, library = os.path.join(folder, "stand_in.c"), os.path.join(folder, "stand_in.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write(STAND_IN)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return ctypes.CDLL(library, ctypes.RTLD_GLOBAL)


def main():
    with tempfile.TemporaryDirectory() as folder:
        library = stand_in(folder)
        try:
            import nvshmem.core as nvshmem
            from nvshmem.bindings import TeamConfig
        except ImportError as problem:
            print(f"not run: NVSHMEM4Py is not installed ({problem})", file=sys.stderr)
            return 2
        x, y = TeamConfig(), TeamConfig()
        nvshmem.team_split_2d(nvshmem.Teams.TEAM_WORLD, 1, x, 11, y, 22)
    given = {0: "parent", 1: "xrange", 11: "xaxis_mask", 22: "yaxis_mask", x.ptr: "xaxis_config", y.ptr: "yaxis_config"}
    passed = list((ctypes.c_long * 8).in_dll(library, "passed"))
    # The handles' places are made by NVSHMEM4Py: what is left over, in the order in which they are passed.
    handles = iter(("xaxis_team", "yaxis_team"))
    found = {name: given.get(value) or next(handles, "?") for name, value in zip(ARGUMENTS, passed)}
    print(json.dumps({"nvshmem4py": importlib.metadata.version("nvshmem4py-cu13"), "gets": found}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
