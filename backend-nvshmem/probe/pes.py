"""Starts the PEs of one question, ends them in time, and gathers what they left."""

import json
import os
import re
import signal
import socket
import subprocess
import time

NO_GPU = 69  # the program's exit status when CUDA finds no device
BROKEN = 3  # … when it could not ask its question
GRACE = 2.0  # seconds that the others get after a PE has ended badly
ENDED = "ended with the others"
TIME_LIMIT = "time limit"


def run(words, folder, environments, limit):
    """Runs one process for each environment. Returns (seconds, [a PE's record, …])."""
    os.makedirs(folder)
    started = time.monotonic()
    processes, logs = [], []
    for rank, environment in enumerate(environments):
        log = open(os.path.join(folder, f"printed.{rank}"), "wb")
        logs.append(log)
        environment = {**environment, "ONESIDED_PROBE_DIR": folder}
        processes.append(
            subprocess.Popen(
                words,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                start_new_session=True,
            )
        )
    try:
        forced = _wait(processes, started + limit)
    finally:
        _end([process for process in processes if process.poll() is None])
        for log in logs:
            log.close()
    seconds = round(time.monotonic() - started, 2)
    return seconds, [_gather(folder, rank, process, forced.get(rank)) for rank, process in enumerate(processes)]


def _wait(processes, deadline):
    """Waits until all have ended, or must be ended. Returns why those that still run are ended: {rank: reason}."""
    bad_since = None
    while True:
        running = [rank for rank, process in enumerate(processes) if process.poll() is None]
        if not running:
            return {}
        now = time.monotonic()
        if now > deadline:
            return {rank: TIME_LIMIT for rank in running}
        if bad_since is None and any(process.poll() not in (None, 0) for process in processes):
            bad_since = now
        if bad_since is not None and now > bad_since + GRACE:
            return {rank: ENDED for rank in running}
        time.sleep(0.01)


def _end(processes):
    """Each process leads a group of its own, which was started here: only these are ended."""
    for kind, patience in ((signal.SIGTERM, 1.0), (signal.SIGKILL, 10.0)):
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, kind)
        until = time.monotonic() + patience
        while time.monotonic() < until and any(process.poll() is None for process in processes):
            time.sleep(0.01)


def exit_word(status):
    if status is None:
        return "could not be ended"
    if status < 0:
        return signal.Signals(-status).name
    return str(status)


def _gather(folder, rank, process, forced):
    pe = {"rank": rank, "exit": forced or exit_word(process.poll()), "last_call": None, "said": [], "observed": {}}
    done = False
    for entry in _entries(os.path.join(folder, f"record.{rank}")):
        if "call" in entry:
            pe["last_call"] = entry["call"]
        elif "say" in entry:
            pe["said"].append(entry["say"])
        elif "key" in entry:
            pe["observed"][entry["key"]] = entry["value"]
        elif "done" in entry:
            done = True
        else:
            pe.update(entry)  # broken, no_gpu, not_run
    if done:
        pe["done"] = True
    with open(os.path.join(folder, f"printed.{rank}"), "rb") as file:
        printed = file.read(1 << 16).decode(errors="replace")
    lines = [clean(line) for line in printed.splitlines() if line.strip()]
    pe["printed"] = lines if len(lines) <= 8 else lines[:4] + ["…"] + lines[-4:]
    return pe


def _entries(path):
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                yield json.loads(line)
            except ValueError:
                return  # a process that ended within a line


def clean(line):
    """Without what belongs to one machine: folders and its name."""
    line = re.sub(r"(?<![\w.])/(?:[\w.+~-]+/)+", "", line).replace(socket.gethostname(), "HOST")
    return line.strip()[:300]


def went_badly(pe):
    return pe["exit"] != "0"


def answer(question, records):
    """One cell of the table: what the PEs said, and how those ended that did not end well."""
    texts = {}
    for pe in records:
        words = "; ".join(pe["said"] + _ending(question, pe, records))
        texts.setdefault(words, []).append(pe["rank"])
    texts = {words: ranks for words, ranks in texts.items() if words}
    if not texts:
        return "returns"
    if texts[next(iter(texts))] == list(range(len(records))):
        words = next(iter(texts))
    else:
        words = ". ".join(f"{_pes(ranks)}: {words}" for words, ranks in texts.items())
    if question.prints:
        printed = next((pe["printed"][0] for pe in records if pe["printed"]), None)
        words += f"; printed: `{printed[:120]}`" if printed else "; nothing is printed"
    return words


def _pes(ranks):
    return f"PE {ranks[0]}" if len(ranks) == 1 else "PEs " + ", ".join(str(rank) for rank in ranks)


def _ending(question, pe, records):
    call = f"`{pe['last_call']}`" if pe["last_call"] else "its start"
    if "broken" in pe:
        return [f"the probe could not ask: {pe['broken']}"]
    if pe["exit"] == "0":
        return [] if pe.get("done") else [f"ends the process with 0 in {call}"]
    if pe["exit"] == TIME_LIMIT:
        return [f"hangs in {call}"]
    if pe["exit"] == ENDED:
        return [] if pe["said"] else [f"was in {call} when the other ended"]
    kind = f"exit {pe['exit']}" if pe["exit"].isdigit() else pe["exit"]
    got = pe["observed"].get(question.counts)
    printed = f", printing `{pe['printed'][-1][:120]}`" if pe["printed"] and not question.prints else ""
    return [f"{got} {question.counts}"] * (got is not None) + [f"ends the process in {call}: {kind}{printed}"]


def same_bits(first, second):
    """For a question that was run twice: whether what is called bits_… is the same."""
    bits = [
        [{k: v for k, v in pe["observed"].items() if k.startswith("bits_")} for pe in run] for run in (first, second)
    ]
    if not any(bits[0]):
        return "no sums to compare"
    return "equal bits in a second job" if bits[0] == bits[1] else "other bits in a second job"
