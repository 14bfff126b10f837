"""One PE of the question about NVSHMEM4Py: which teams does its team_split_2d return?

On 2 PEs with xrange 1, each PE is alone in its x team, and both are in one y team.
"""

import ctypes
import json
import os
import sys
import time

RANK, PES = int(os.environ["ONESIDED_RANK"]), int(os.environ["ONESIDED_PES"])
FOLDER = os.environ["ONESIDED_PROBE_DIR"]


def line(**entry):
    with open(os.path.join(FOLDER, f"record.{RANK}"), "a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def exchange(data):
    """PE 0's bytes, on all PEs."""
    path = os.path.join(FOLDER, "uid")
    if RANK == 0:
        with open(path + "~", "wb") as file:
            file.write(data)
        os.rename(path + "~", path)
    until = time.monotonic() + float(os.environ["ONESIDED_TIMEOUT"])
    while not os.path.exists(path):
        if time.monotonic() > until:
            raise TimeoutError("PE 0 wrote no unique id")
        time.sleep(0.01)
    with open(path, "rb") as file:
        return file.read()


def main():
    try:
        # The version under test, before NVSHMEM4Py loads one of its own choice.
        ctypes.CDLL(os.path.join(os.environ["ONESIDED_NVSHMEM_LIB"], "libnvshmem_host.so.3"), ctypes.RTLD_GLOBAL)
        import numpy
        import nvshmem.core as nvshmem
        from cuda.core import Device
        from nvshmem.bindings import TeamConfig
    except ImportError as problem:
        line(not_run=f"NVSHMEM4Py is not installed ({problem})")
        return
    version = nvshmem.get_version()
    line(key="nvshmem4py", value=version.nvshmem4py_version)
    line(key="library", value=version.libnvshmem_version)
    device = Device(int(os.environ["ONESIDED_DEVICE"]))
    device.set_current()
    uid = nvshmem.get_unique_id(empty=RANK != 0)
    uid._data.view(numpy.int8)[:] = numpy.frombuffer(exchange(uid._data.tobytes()), dtype=numpy.int8)
    line(call="nvshmem.core.init")
    nvshmem.init(device=device, uid=uid, rank=RANK, nranks=PES, initializer_method="uid")
    configs = TeamConfig(), TeamConfig()
    for config in configs:
        config.version, config.num_contexts = (2 << 16) + 64, -1
    line(call="nvshmem.core.team_split_2d")
    teams = nvshmem.team_split_2d(nvshmem.Teams.TEAM_WORLD, 1, configs[0], 0, configs[1], 0)
    words = []
    for name, team, expected in zip("xy", teams, (1, PES)):
        size = None if team is None else nvshmem.team_n_pes(team)
        line(key=f"{name}_handle", value=None if team is None else int(team))
        line(key=f"{name}_n_pes", value=size)
        words.append(f"{name} has handle {team} and {size} PEs, expected {expected}")
    line(key="y_config_version_afterwards", value=int(configs[1].version))
    line(say=f"NVSHMEM4Py {version.nvshmem4py_version}: " + "; ".join(words))
    line(call="nvshmem.core.finalize")
    nvshmem.finalize()
    line(done=True)


if __name__ == "__main__":
    main()
    sys.exit(0)
