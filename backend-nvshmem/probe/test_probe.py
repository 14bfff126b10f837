#!/usr/bin/env python3
"""Tests of the probe's script, with programs that only pretend: `python3 test_probe.py`. Needs no GPU."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import page  # noqa: E402
import pes  # noqa: E402
from questions import QUESTIONS, Question  # noqa: E402

# Does what its first argument says, as a PE of the real program would leave it.
PRETENDER = """#!{python}
import json, os, signal, sys, time
rank, what = int(os.environ["ONESIDED_RANK"]), sys.argv[1]
file = open(os.path.join(os.environ["ONESIDED_PROBE_DIR"], f"record.{{rank}}"), "a")
def line(**entry):
    print(json.dumps(entry), file=file, flush=True)
if what == "facts":
    if os.environ.get("PRETEND_NO_GPU"):
        line(no_gpu="no device")
        sys.exit(69)
    for key, value in dict(gpu="NVIDIA H0 Pretended", gpus=1, cuda="13.0", library="3.4.5").items():
        line(key=key, value=value)
line(call="a_call(1)")
if what == "all-alike":
    line(say="rc 0")
elif what == "differ":
    line(say=f"I am {{rank}}")
elif what == "leaders":
    line(say="before")
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(60)
elif what == "exits":
    print("/some/where/file.cu:12: not supported", file=sys.stderr, flush=True)
    os._exit(255)
elif what == "hangs":
    time.sleep(60)
elif what == "cut":
    file.write('{{"say": "half a li')
    file.flush()
    os._exit(0)
elif what == "counts":
    line(key="teams", value=24)
    line(key="teams", value=25)
    os._exit(255)
elif what == "broken":
    line(broken="no memory")
    os._exit(3)
elif what == "sum-order":
    line(key="bits_float", value=os.environ["ONESIDED_PROBE_DIR"][-1] if os.environ.get("PRETEND_ORDER") else "1")
else:
    percentage = os.environ.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "off")
    line(say="mps " + percentage + " nvls off " + os.environ["NVSHMEM_DISABLE_NVLS"])
line(done=True)
"""

DAEMON = """#!{python}
import os, signal, subprocess, sys
path = os.path.join(os.environ["CUDA_MPS_PIPE_DIRECTORY"], "nvidia-cuda-mps-control.pid")
log = open(os.environ["PRETEND_LOG"], "a")
if sys.argv[1:] == ["-d"]:
    null = subprocess.DEVNULL
    child = subprocess.Popen(["sleep", "60"], start_new_session=True, stdout=null, stderr=null)
    print(child.pid, file=open(path, "w"))
    print("started", child.pid, file=log)
else:
    pid = int(open(path).read())
    print(sys.stdin.read().split()[0], pid, file=log)
    os.kill(pid, signal.SIGTERM)
"""


class Pretended(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.program = self.script("program", PRETENDER)

    def script(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.format(python=sys.executable))
        os.chmod(path, 0o755)
        return path

    def answer(self, what, count=2, limit=10.0, **more):
        question = Question(what, "", "", (what,), count, limit, **more)
        environments = [{**os.environ, "ONESIDED_RANK": str(rank)} for rank in range(count)]
        _, records = pes.run([self.program, what], os.path.join(self.folder, what), environments, limit)
        return pes.answer(question, records), records


class Answers(Pretended):
    def test_what_all_say_is_said_once(self):
        self.assertEqual(self.answer("all-alike")[0], "rc 0")

    def test_differing_pes_are_named(self):
        self.assertEqual(self.answer("differ")[0], "PE 0: I am 0. PE 1: I am 1")

    def test_a_signal_is_an_answer_and_ends_the_others_soon(self):
        words, records = self.answer("leaders")
        self.assertEqual(words, "PE 0: before. PE 1: before; ends the process in `a_call(1)`: SIGSEGV")
        self.assertEqual([pe["exit"] for pe in records], [pes.ENDED, "SIGSEGV"])

    def test_an_exit_status_comes_with_what_was_printed_without_folders(self):
        expected = "ends the process in `a_call(1)`: exit 255, printing `file.cu:12: not supported`"
        self.assertEqual(self.answer("exits")[0], expected)

    def test_a_hang_ends_at_the_limit(self):
        words, records = self.answer("hangs", limit=0.5)
        self.assertEqual(words, "hangs in `a_call(1)`")
        self.assertEqual({pe["exit"] for pe in records}, {pes.TIME_LIMIT})

    def test_a_record_that_ends_within_a_line_is_read_up_to_there(self):
        self.assertEqual(self.answer("cut", 1)[0], "ends the process with 0 in `a_call(1)`")

    def test_how_far_a_process_got_that_was_ended(self):
        self.assertEqual(
            self.answer("counts", 1, counts="teams")[0], "25 teams; ends the process in `a_call(1)`: exit 255"
        )

    def test_the_probes_own_trouble_is_no_answer(self):
        self.assertEqual(self.answer("broken", 1)[0], "the probe could not ask: no memory")


class WholeRuns(Pretended):
    def setUp(self):
        super().setUp()
        os.makedirs(os.path.join(self.folder, "nvshmem/lib"))
        os.makedirs(os.path.join(self.folder, "nvshmem/include"))
        for empty in ("lib/libnvshmem_host.so.3", "include/nvshmem_host.h"):
            open(os.path.join(self.folder, "nvshmem", empty), "w", encoding="utf-8").close()
        self.script("nvidia-cuda-mps-control", DAEMON)
        self.out = os.path.join(self.folder, "result.json")

    def start(self, *words, **settings):
        command = [sys.executable, os.path.join(HERE, "run"), "--library", os.path.join(self.folder, "nvshmem")]
        environment = {**os.environ, **settings, "PRETEND_LOG": os.path.join(self.folder, "log")}
        environment["PATH"] = self.folder + ":" + environment["PATH"]
        command += ["--program", self.program, "--out", self.out, *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

    def answers(self):
        with open(self.out, encoding="utf-8") as file:
            result = json.load(file)
        return {entry["name"]: entry.get("answer", entry.get("not_run")) for entry in result["questions"]}

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8") as file:
            return file.read().split()

    def test_without_a_gpu_it_says_so(self):
        done = self.start(PRETEND_NO_GPU="1")
        self.assertEqual((done.returncode, done.stderr), (2, "not run: there is no GPU here: no device\n"))
        self.assertFalse(os.path.exists(self.out))

    def test_mps_where_pes_share_a_gpu_and_its_daemon_is_ended(self):
        done = self.start("init-*", "no-mps-init")
        self.assertEqual(done.returncode, 0, done.stderr)
        shared, off = "mps 50 nvls off 1", "mps off nvls off 1"
        expected = {"init-1": off, "init-2": shared, "init-4": "mps 25 nvls off 1", "no-mps-init": off}
        self.assertEqual(self.answers(), expected)
        log = self.log()
        self.assertEqual([log[0], log[2]], ["started", "quit"])
        self.assertFalse(os.path.exists(f"/proc/{log[1]}/exe"))

    def test_a_daemon_is_new_after_a_process_that_ended_badly(self):
        self.start("init-2", "leaders", "max-teams")
        self.assertEqual(self.log()[::2], ["started", "quit"] * 2)

    def test_a_second_run_adds_to_the_file(self):
        self.start("init-2")
        self.start("translate")
        self.assertEqual(list(self.answers()), ["init-2", "translate"])

    def test_results_of_another_machine_are_taken_over(self):
        self.start("init-2")
        results = os.path.join(self.folder, "results")
        self.assertEqual(self.merge(results).stdout, "written: 3.4.5-1xh0.json\n")
        self.start("translate")
        self.assertEqual(self.merge(results).stdout, "written: 3.4.5-1xh0.json\n")
        with open(os.path.join(results, "3.4.5-1xh0.json"), encoding="utf-8") as file:
            self.assertEqual([entry["name"] for entry in json.load(file)["questions"]], ["init-2", "translate"])

    def test_results_of_another_driver_get_a_file_of_their_own(self):
        self.start("init-2")
        results = os.path.join(self.folder, "results")
        self.merge(results)
        with open(self.out, encoding="utf-8") as file:
            other = {**json.load(file), "driver": "1.2"}
        with open(self.out, "w", encoding="utf-8") as file:
            json.dump(other, file)
        self.assertEqual(self.merge(results).stdout, "written: 3.4.5-1xh0-1.2-13.0.json\n")
        self.assertEqual(sorted(os.listdir(results)), ["3.4.5-1xh0-1.2-13.0.json", "3.4.5-1xh0.json"])

    def test_what_is_no_result_file_is_refused_before_anything_is_written(self):
        self.start("init-2")
        results = os.path.join(self.folder, "results")
        done = self.merge(results, self.program)
        self.assertEqual(done.returncode, 2)
        self.assertIn("is no result file of the probe", done.stderr)
        self.assertFalse(os.path.exists(results))

    def merge(self, results, *more):
        command = [sys.executable, os.path.join(HERE, "run"), "--merge", self.out, *more, "--out", results]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def test_bits_of_two_jobs_are_compared(self):
        self.start("sum-order")
        self.assertEqual(self.answers()["sum-order"], "returns; equal bits in a second job")
        self.start("sum-order", PRETEND_ORDER="1")
        self.assertEqual(self.answers()["sum-order"], "returns; other bits in a second job")

    def test_what_there_is_no_time_for_is_not_run(self):
        self.start("init-1", "--limit", "0")
        self.assertEqual(self.answers(), {"init-1": "the 0 s were up"})

    def test_a_name_that_is_no_question(self):
        done = self.start("inti")
        self.assertEqual((done.returncode, done.stderr), (2, "no question is called inti: --list shows them\n"))


class ThePage(unittest.TestCase):
    def result(self, version, **answers):
        entries = [{"name": name.replace("_", "-"), "answer": words} for name, words in answers.items()]
        head = {
            "library": version,
            "date": "2026-01-01",
            "gpu": "NVIDIA H0",
            "gpus_used": 1,
            "driver": "1",
            "cuda": "13.0",
        }
        return {**head, "questions": entries}

    def test_one_column_for_each_file(self):
        found = [self.result("3.4.5", init_1="rc 0"), self.result("3.8.0", init_1="a | b")]
        lines = page.tables(QUESTIONS, found).splitlines()
        self.assertIn("| question | PEs | what is done | 3.4.5, 1 × H0 | 3.8.0, 1 × H0 |", lines)
        self.assertIn("| `init-1` | 1 | initialization by a unique id | rc 0 | a \\| b |", lines)
        self.assertIn("| `init-2` | 2 | initialization by a unique id | – | – |", lines)

    def test_text_around_the_markers_stays(self):
        text = f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n"
        new = page.rewritten(text, QUESTIONS, [])
        self.assertEqual(new, f"before\n{page.BEGIN}\n\nNothing has been measured yet.\n\n{page.END}\nafter\n")
        with self.assertRaises(ValueError):
            page.rewritten("no markers", QUESTIONS, [])

    def test_the_page_is_what_the_results_say(self):
        done = subprocess.run(
            [sys.executable, os.path.join(HERE, "run"), "--page", "--check"], capture_output=True, text=True
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_names_are_unique(self):
        self.assertEqual(len({question.name for question in QUESTIONS}), len(QUESTIONS))


if __name__ == "__main__":
    unittest.main()
