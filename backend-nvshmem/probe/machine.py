"""What the probe needs of the machine: NVSHMEM's folder, a compiler, an MPS daemon of its own."""

import glob
import os
import shutil
import signal
import subprocess
import sys
import time

LIBRARY = "libnvshmem_host.so.3"


class Problem(Exception):
    """The probe cannot run here; the text says why and what would help."""


def find_library(given):
    """The folder with the library, which has `include` beside it."""
    if given:
        places = [given, os.path.join(given, "lib")]
    else:
        places = [os.path.join(path, "lib") for path in _package("nvidia.nvshmem")]
    for place in places:
        if os.path.isfile(os.path.join(place, LIBRARY)):
            place = os.path.abspath(place)
            if not os.path.isfile(os.path.join(place, "..", "include", "nvshmem_host.h")):
                raise Problem(
                    f"no include/nvshmem_host.h beside {place}: the probe is compiled against the library's headers"
                )
            return place
    if given:
        raise Problem(f"no {LIBRARY} in {given}")
    raise Problem("NVSHMEM is not installed as a Python package: name its lib folder with --library DIR")


def _package(name):
    code = f"import {name} as m; print('\\n'.join(m.__path__))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    if found.returncode != 0:  # another Python may have it
        found = subprocess.run(["python3", "-c", code], capture_output=True, text=True, timeout=60)
    return found.stdout.split("\n")[:-1] if found.returncode == 0 else []


def cuda_folders(given):
    """Folders that may be a CUDA toolkit's root, the given one first and alone."""
    if given:
        return [given]
    places = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    nvcc = shutil.which("nvcc")
    if nvcc:
        places.append(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))))
    places += ["/usr/local/cuda", *_package("nvidia.cu13")]
    return [place for place in places if place]


def compile_probe(library, cuda, build):
    """Compiles the program with the host's compiler; CUDA gives headers and the runtime library only."""
    here = os.path.dirname(os.path.abspath(__file__))
    compiler = shutil.which("g++") or shutil.which("c++")
    if not compiler:
        raise Problem("no g++ to compile the probe with")
    for root in cuda_folders(cuda):
        include = os.path.join(root, "include")
        runtimes = [
            path
            for folder in ("lib64", "lib", "targets/x86_64-linux/lib")
            for path in sorted(glob.glob(os.path.join(root, folder, "libcudart.so*")))
        ]
        if os.path.isfile(os.path.join(include, "cuda_runtime.h")) and runtimes:
            break
    else:
        raise Problem("no CUDA with include/cuda_runtime.h and libcudart.so: name its folder with --cuda DIR")
    program = os.path.join(build, "probe")
    folders = [os.path.join(library, "..", "include"), include, os.path.join(include, "cccl")]
    words = [compiler, "-std=c++17", "-O2", "-pthread", "-o", program, os.path.join(here, "probe.cpp")]
    words += [f"-isystem{folder}" for folder in folders if os.path.isdir(folder)]
    words += [os.path.join(library, LIBRARY), runtimes[0], "-ldl", f"-Wl,-rpath,{library}"]
    words += [f"-Wl,-rpath,{os.path.dirname(runtimes[0])}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise Problem(f"the probe does not compile against {library}:\n{done.stderr[:4000]}")
    return program


def network(folder):
    """The environment of PEs that reach each other by UCX over TCP only; None without UCX. The plug-in needs GDRCopy, or a
    stand-in for it, which suffices because the heap is memory of the host."""
    if not folder:
        return None
    found = {os.path.basename(path): os.path.dirname(path) for path in glob.glob(f"{folder}/**/*.so*", recursive=True)}
    if not {"libucp.so.0", "libuct_cuda.so.0", "libgdrapi.so.2"} <= found.keys():
        return None
    folders = dict.fromkeys(os.path.abspath(found[name]) for name in sorted(found) if found[name] != found["libuct_cuda.so.0"])
    over_tcp = "tcp,self,cuda_copy"
    return {
        "LD_LIBRARY_PATH": ":".join(folders),
        "UCX_MODULE_DIR": os.path.abspath(found["libuct_cuda.so.0"]),
        "UCX_TLS": over_tcp,
        "UCX_LOG_LEVEL": "error",
        "UCX_WARN_UNUSED_ENV_VARS": "n",
        "NVSHMEM_UCX_TLS": over_tcp,
        "NVSHMEM_REMOTE_TRANSPORT": "ucx",
        "NVSHMEM_DISABLE_P2P": "1",
        "NVSHMEM_HEAP_KIND": "SYSMEM",
        "NVSHMEM_SYMMETRIC_SIZE": "64M",
    }


def driver_version():
    try:
        words = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=30)
        return done.stdout.split("\n")[0].strip() or "unknown"
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"


def nccl_folder():
    """Where NCCL's package lies, so that the library can load it where a question allows that."""
    for path in _package("nvidia.nccl"):
        if glob.glob(os.path.join(path, "lib", "libnccl.so.2")):
            return os.path.join(path, "lib")
    return None


class Mps:
    """An MPS daemon of our own, in a folder of its own. Ended when the `with` ends."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0
        self.environment = None

    @staticmethod
    def available():
        return shutil.which("nvidia-cuda-mps-control") is not None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def needed(self):
        """The environment of clients; starts the daemon if it is not running."""
        if self.environment:
            return self.environment
        self.count += 1
        pipe = os.path.join(self.folder, f"mps{self.count}")
        os.makedirs(pipe)
        self.environment = {"CUDA_MPS_PIPE_DIRECTORY": pipe, "CUDA_MPS_LOG_DIRECTORY": pipe}
        done = self._control(["-d"], "")
        if done != 0:
            self.environment = None
            raise Problem(f"nvidia-cuda-mps-control -d ended with {done}")
        return self.environment

    def _control(self, words, said):
        try:
            return subprocess.run(
                ["nvidia-cuda-mps-control", *words],
                input=said,
                text=True,
                env={**os.environ, **self.environment},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=15,
            ).returncode
        except subprocess.TimeoutExpired:
            return "a time limit"

    def stop(self):
        """Ends the daemon, if need be by its process id, which it left in its own folder."""
        if not self.environment:
            return
        pid_file = os.path.join(self.environment["CUDA_MPS_PIPE_DIRECTORY"], "nvidia-cuda-mps-control.pid")
        try:
            with open(pid_file, encoding="ascii") as file:
                pid = int(file.read().split()[0])
        except (OSError, ValueError, IndexError):
            pid = None
        self._control([], "quit -t 2\n")
        until = time.monotonic() + 8
        while pid and _alive(pid):
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
                break
            time.sleep(0.05)
        self.environment = None


def _alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False
