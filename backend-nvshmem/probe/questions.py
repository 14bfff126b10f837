"""The questions: what each is called, what is done, with how many PEs. The program's side is in probe.cpp."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Question:
    name: str
    topic: str
    about: str  # what is done, for the table
    command: tuple  # the program's arguments
    pes: int = 2
    limit: float = 12  # seconds; a question that hangs costs this much
    one_gpu: bool = False  # all PEs on one GPU, even where there are more
    mps: bool = True  # under MPS where PEs share a GPU
    settings: dict = dataclasses.field(default_factory=dict)  # environment variables
    twice: bool = False  # is run two times, and what is recorded as bits_… compared
    counts: str = ""  # a field that tells how far a process got that was ended
    prints: bool = False  # what the library prints belongs to the answer
    network: bool = False  # PEs reach each other by a network only


def _topic(topic, **common):
    def question(name, about, *command, **more):
        return Question(name, topic, about, tuple(str(word) for word in command), **{**common, **more})

    return question


_life = _topic("Initialization and finalize")
_teams = _topic("Teams")
_alone = _topic("Several PEs on one GPU without MPS", one_gpu=True, mps=False, limit=8)
_memory = _topic("Symmetric memory")
_transfers = _topic("Transfers, atomics, signals")
_order = _topic("What a call waits for that is pending on a stream", limit=20)
_collectives = _topic("Collectives")
_full = _topic("A GPU without free memory", limit=25)
_loading = _topic("When kernels are loaded", limit=8)
_network = _topic("PEs behind a network, 12,000 runs each", limit=60, network=True)
_context = _topic("The context of another GPU current in the thread", pes=1, limit=10)

SAYS = {"lazy": "`CUDA_MODULE_LOADING` as CUDA has it, `LAZY`", "eager": "with `CUDA_MODULE_LOADING=EAGER`"}


def loading(mode):
    return {"CUDA_MODULE_LOADING": mode.upper()}


# Nothing may be loaded while a stream waits.
_nbi = _topic("What overtakes an nbi operation, and what claims it", limit=25, settings=loading("eager"))

NCCL_ON = {"NVSHMEM_DISABLE_NCCL": "0"}

QUESTIONS = [
    _life("init-1", "initialization by a unique id", "init", pes=1),
    _life("init-2", "initialization by a unique id", "init"),
    _life("init-4", "initialization by a unique id", "init", pes=4),
    _life("finalize-twice", "`nvshmemx_hostlib_finalize` two times", "finalize-twice"),
    _life("reinit", "finalize, then initialization with a new unique id", "reinit"),
    _teams("split-beyond-world", "`team_split_strided(WORLD, 0, 1, n + 1)`", "split", 0, 1, 3, limit=8),
    _teams("split-start-negative", "`team_split_strided(WORLD, -1, 1, 1)`", "split", -1, 1, 1, limit=8),
    _teams("split-size-zero", "`team_split_strided(WORLD, 0, 1, 0)`", "split", 0, 1, 0, limit=8),
    _teams("split-stride-zero", "`team_split_strided(WORLD, 0, 0, 1)`", "split", 0, 0, 1, limit=8),
    _teams(
        "split-beyond-parent",
        "a parent of PEs 0 and 1 of 4, then `team_split_strided(parent, 0, 1, 3)`",
        "split-outsider",
        pes=4,
        limit=8,
    ),
    _teams("translate", "`team_translate_pe(WORLD, src_pe, WORLD)` out of range", "translate"),
    _teams("destroy-world", "`team_destroy(WORLD)`, then barriers", "destroy-world", limit=8, prints=True),
    _teams("leaders", "`team_my_pe(GPU_LEADERS)`, also on a PE that is no leader", "leaders", one_gpu=True),
    _teams("max-teams", "`team_split_strided(WORLD, 0, 1, n)` until it fails", "max-teams", limit=25, counts="teams"),
    _teams(
        "split-2d-python", "`team_split_2d(WORLD, 1)` of NVSHMEM4Py: x teams of 1, y team of 2", "split_2d.py", limit=25
    ),
    _alone("no-mps-init", "initialization", "init"),
    _alone("no-mps-split", "`team_split_strided`", "limited", "split"),
    _alone("no-mps-barrier", "`barrier(WORLD)`", "limited", "barrier"),
    _alone("no-mps-barrier-all", "`barrier_all`", "limited", "barrier_all"),
    _alone("no-mps-barrier-all-on-stream", "`barrier_all_on_stream`", "limited", "barrier_all_on_stream"),
    _alone("no-mps-putmem", "`putmem`", "limited", "putmem"),
    _alone("no-mps-signal-wait", "`signal_wait_until_on_stream`", "limited", "signal_wait"),
    _alone("no-mps-reduce", "`uint64_sum_reduce`", "limited", "reduce"),
    _memory("malloc-zero", "allocations of no bytes", "malloc-zero"),
    _memory("align-4", "`align(4, 64)`", "align", 4),
    _memory("align-24", "`align(24, 64)`", "align", 24),
    _memory("align-64", "`align(64, 64)`", "align", 64),
    _memory("free-interior", "`free` of a pointer into an allocation", "free-interior", prints=True),
    _memory("malloc-200-gib", "`malloc` of 200 GiB, more than the GPU has", "malloc-huge", 200),
    _memory("malloc-1-tib", "`malloc` of 1 TiB, more than there are addresses for", "malloc-huge", 1024),
    _memory("malloc-twice-1", "`malloc` of 70 % of the GPU, then again", "malloc-twice", pes=1, limit=20),
    _memory("malloc-twice-2", "the same, the GPU's 70 % shared by its PEs", "malloc-twice", limit=20),
    _memory("calloc-overflow", "`calloc(2^61 + 1, 8)`", "calloc-overflow"),
    _memory("register-6-mib", "`buffer_register_symmetric` of 6 MiB", "register", 6, prints=True),
    _memory(
        "register-6-mib-step-2-mib",
        "the same with `NVSHMEM_CUMEM_GRANULARITY` 2 MiB",
        "register",
        6,
        settings={"NVSHMEM_CUMEM_GRANULARITY": str(2 << 20)},
    ),
    _memory("register-512-mib", "the same of 512 MiB, the default granularity", "register", 512),
    _transfers("atomics", "atomics from the host", "atomics", prints=True),
    _transfers("scalars", "`int_g`, `double_g`, `int_p`, `signal_fetch`", "scalars"),
    _transfers("strided-host", "`int_iput` with strides 2 and 3, `int_iget` with 3 and 2", "strided", "host"),
    _transfers("strided-stream", "the same on a stream", "strided", "stream"),
    _transfers("p-behind-a-wait", "`int_p_on_stream` on a stream that waits for a second", "p-behind-a-wait"),
    _transfers("g-on-stream", "`int_g_on_stream` on an idle stream", "g-on-stream", "idle"),
    _transfers("g-behind-a-wait", "`int_g_on_stream` on a stream that waits for a second", "g-on-stream", "blocked"),
    _transfers("put-signal-zero", "`putmem_signal_on_stream` of 0 bytes", "put-signal-zero"),
    _transfers(
        "wait-all-status-host",
        "`wait_until_all_on_stream`, status array on the host",
        "wait-all",
        "status",
        "host",
        pes=1,
    ),
    _transfers(
        "wait-all-status-device",
        "`wait_until_all_on_stream`, status array on the device",
        "wait-all",
        "status",
        "device",
        pes=1,
    ),
    _transfers(
        "wait-all-status-pinned",
        "`wait_until_all_on_stream`, status array in page-locked memory",
        "wait-all",
        "status",
        "pinned",
        pes=1,
    ),
    _transfers(
        "wait-all-values-host",
        "`wait_until_all_vector_on_stream`, values on the host",
        "wait-all",
        "values",
        "host",
        pes=1,
    ),
    _transfers(
        "wait-all-values-device",
        "`wait_until_all_vector_on_stream`, values on the device",
        "wait-all",
        "values",
        "device",
        pes=1,
    ),
    _transfers(
        "wait-all-values-pinned",
        "`wait_until_all_vector_on_stream`, values in page-locked memory",
        "wait-all",
        "values",
        "pinned",
        pes=1,
    ),
    _order(
        "quiet-takeover",
        "2 GiB by `putmem_nbi_on_stream(B)`; `quiet_on_stream(A)`; then does `quiet_on_stream(B)` still wait?",
        "quiet-takeover",
        limit=40,
    ),
    _order("barrier-all-pending", "host `barrier_all` with a put behind a waiting stream", "pending", "barrier_all"),
    _order("sync-all-pending", "host `sync_all` with the same", "pending", "sync_all"),
    _order("quiet-pending", "host `quiet` with the same", "pending", "quiet"),
    _order("fence-pending", "host `fence` with the same", "pending", "fence"),
    _order("quiet-on-stream-pending", "`quiet_on_stream` of another stream", "pending", "quiet_on_stream"),
    _order(
        "barrier-on-stream-pending", "`barrier_all_on_stream` of another stream", "pending", "barrier_all_on_stream"
    ),
    *(
        _order(f"{name}-pending", f"host `{name}` with the same", "pending", call)
        for name, call in (
            ("malloc", "malloc"),
            ("free", "free"),
            ("put", "putmem"),
            ("get", "getmem"),
            ("p", "p"),
            ("g", "g"),
        )
    ),
    _order("quiet-cost", "medians of calls with nothing to do", "quiet-cost"),
    _nbi(
        "overtaken-on-stream",
        "1 GiB by `putmem_nbi_on_stream`, then on the same stream what the peer waits for: is the data old?",
        "overtaken",
        "stream",
    ),
    _nbi(
        "overtaken-host",
        "1 GiB by the host's `putmem_nbi`, then what the peer waits for: is the data old?",
        "overtaken",
        "host",
    ),
    *(
        _nbi(f"claim-{by}", f"{about}: is the data old?", "claim", by)
        for by, about in (
            (
                "stream-before-host",
                "the host's `putmem_nbi` of 1 GiB; first `quiet_on_stream`; then `quiet`; a signal",
            ),
            (
                "blocked-stream",
                "stream A waits for the peer's answer; `putmem_nbi_on_stream(B)`; first `quiet_on_stream(A)`; then "
                "`quiet_on_stream(B)`; a signal",
            ),
            (
                "fence",
                "`putmem_nbi_on_stream(B)`; first `quiet_on_stream(B)`, of which a fence is composed; then "
                "`quiet_on_stream(C)`; a signal on C",
            ),
            (
                "fence-and-nothing",
                "the same with a `putmem_nbi` of 0 bytes by the host behind the fence",
            ),
            ("flush", "the same with `flush_on_stream(B)` in the place of the fence"),
        )
    ),
    _nbi(
        "wait-order",
        "waits on a stream for values that are half the range apart or more: in which order are they compared?",
        "wait-order",
        pes=1,
    ),
    _nbi(
        "wait-order-bypass",
        "the same with `NVSHMEM_BYPASS_FLUSH=1`",
        "wait-order",
        pes=1,
        settings={**loading("eager"), "NVSHMEM_BYPASS_FLUSH": "1"},
    ),
    _collectives("alltoall-zero-host", "`int_alltoall` of 0 elements", "zero", "alltoall", "host"),
    _collectives("alltoall-zero-stream", "`int_alltoall_on_stream` of 0 elements", "zero", "alltoall", "stream"),
    _collectives("broadcast-zero-host", "`int_broadcast` of 0 elements", "zero", "broadcast", "host"),
    _collectives("broadcast-zero-stream", "`int_broadcast_on_stream` of 0 elements", "zero", "broadcast", "stream"),
    _collectives("fcollect-zero-stream", "`int_fcollect_on_stream` of 0 elements", "zero", "fcollect", "stream"),
    _collectives("reduce-zero-stream", "`int_sum_reduce_on_stream` of 0 elements", "zero", "reduce", "stream"),
    _collectives("single-pe", "all collectives with 1 PE, host and stream", "single-pe", pes=1),
    *(
        _collectives(f"{what}-{pes}", f"{about}, host and stream", "sizes", what, pes=pes, limit=20, counts="elements")
        for what, about, all_pes in (
            ("reduce", "`int_sum_reduce` of 4 B to 1.6 MB", (2, 3, 4)),
            ("in-place", "`int_sum_reduce` with dest = source", (2, 3, 4)),
            ("reducescatter", "`int_sum_reducescatter`", (2, 3)),
            ("broadcast", "`int_broadcast`", (3,)),
            ("fcollect", "`int_fcollect`", (3,)),
            ("alltoall", "`int_alltoall`", (3,)),
        )
        for pes in all_pes
    ),
    *(
        _collectives(
            f"reducescatter-{which}",
            f"an `int_max_reducescatter` of {size} for all PEs; do barriers of other teams still wait?",
            "teams-after-reducescatter",
            elements,
            limit=20,
        )
        for which, size, elements in (("within-scratch", "256 KiB", 32768), ("beyond-scratch", "32 MB", 4000000))
    ),
    _collectives(
        "sum-order",
        "sums of floats of mixed size, without NCCL: the order of addition",
        "sum-order",
        pes=4,
        limit=25,
        twice=True,
    ),
    _collectives(
        "sum-order-nccl",
        "the same, NCCL allowed (the library uses it only where no PEs share a GPU)",
        "sum-order",
        pes=4,
        limit=25,
        twice=True,
        settings=NCCL_ON,
    ),
    _full("full-malloc", "`malloc` of 1 MiB until NULL", "full-malloc", 1, counts="blocks"),
    _full(
        "full-malloc-step-2-mib",
        "the same with `NVSHMEM_CUMEM_GRANULARITY` 2 MiB",
        "full-malloc",
        1,
        counts="blocks",
        settings={"NVSHMEM_CUMEM_GRANULARITY": str(2 << 20)},
    ),
    _full("full-malloc-600", "the same with 600 MiB, more than a step", "full-malloc", 600, counts="blocks"),
    _full("full-teams", "`team_split_strided(WORLD, 0, 1, n)` until it fails", "full-teams", counts="teams"),
    *(
        _full(f"full-calls-{mode}", f"calls of all kinds for the first time, {SAYS[mode]}", "full-calls", settings=loading(mode))
        for mode in ("lazy", "eager")
    ),
    *(
        _loading(
            f"first-launch-{mode}",
            f"a first `uint16_max_reducescatter_on_stream` behind a wait for what comes later, {SAYS[mode]}",
            "first-launch",
            settings=loading(mode),
        )
        for mode in ("lazy", "eager")
    ),
    *(
        _network(f"network-{name}", about, "network", name, pes=3 if name.startswith("third") else 2)
        for name, about in (
            ("put", "the host's `putmem` returns: is the data old at the peer?"),
            ("put-nbi", "the same with `putmem_nbi`"),
            ("put-fence", "`putmem`, `fence` returns: is the data old?"),
            ("put-quiet", "`putmem`, `quiet` returns: is the data old?"),
            ("nbi-quiet", "`putmem_nbi`, `quiet` returns: is the data old?"),
            ("barrier", "`putmem`, `barrier_all` returns at the peer: is the data old?"),
            ("flag-p", "`putmem`, then `uint64_p` of a flag for which the peer polls: is the data old?"),
            ("flag-nbi-p", "the same with `putmem_nbi`"),
            ("flag-nbi-fence-p", "`putmem_nbi`, `fence`, then `uint64_p` of the flag: is the data old?"),
            ("flag-by-put", "`putmem`, then `putmem` of the flag: are two puts to one PE in order?"),
            ("same-word", "two `putmem` to one place, `quiet`: is the first one's data there?"),
            ("flag-stream-put", "`putmem_on_stream`, then `signal_op_on_stream`: is the data old?"),
            ("flag-stream-nbi", "the same with `putmem_nbi_on_stream`"),
            ("flag-put-signal", "`putmem_signal_on_stream`: is the data old when the signal is there?"),
            ("flag-put-signal-nbi", "the same with `putmem_signal_nbi_on_stream`"),
            ("third-quiet", "PE 0: `putmem` to PE 1, `quiet`; then PE 2: `getmem` from PE 1, `quiet`: is it old?"),
            ("third-flag", "the same, PE 0 tells PE 2 by `uint64_p` of a flag"),
            ("third-barrier", "the same with `barrier_all` between"),
            ("get", "the host's `getmem` returns: is what it brought old?"),
            ("get-quiet", "the same with `quiet` behind it"),
            ("get-stream", "the same with `getmem_on_stream` and a synchronized stream"),
            ("reuse", "the host's `putmem` of up to 1 MiB returns, then its source is overwritten: is what arrives wrong?"),
            ("reuse-quiet", "the same with `quiet` before the source is overwritten"),
            ("reuse-stream", "the same with `putmem_on_stream` and a synchronized stream"),
            ("p-stream", "`uint64_p_on_stream`, the stream synchronized, `quiet`: is the value wrong?"),
        )
    ),
    _network("network-cost", "medians of calls of the host", "network-cost"),
    *(
        _context(f"context-{call}", f"`{function}`", "context", call)
        for call, function in (
            ("put", "putmem_on_stream"),
            ("get", "getmem_on_stream"),
            ("p", "uint64_p_on_stream"),
            ("signal", "signal_op_on_stream"),
            ("wait", "signal_wait_until_on_stream"),
            ("quiet", "quiet_on_stream"),
            ("barrier", "barrier_all_on_stream"),
            ("reduce", "uint64_max_reduce_on_stream"),
            ("host-put", "putmem"),
        )
    ),
]
