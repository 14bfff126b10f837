"""Writes the tables of MEASURED.md from the result files, so that no figure is typed by hand."""

import glob
import json
import os

BEGIN = "<!-- measured: begin; written by `probe/run --page` -->"
END = "<!-- measured: end -->"


def results(folder):
    """All result files, ordered by library version and number of GPUs."""
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path, encoding="utf-8") as file:
            found.append(json.load(file))
    return sorted(found, key=lambda result: (_numbers(result["library"]), result["gpus_used"], result["gpu"]))


def _numbers(version):
    return [int(number) for number in version.split(".")]


def cell(words):
    return " ".join(str(words).split()).replace("|", "\\|")


def _row(cells):
    return "| " + " | ".join(cell(words) for words in cells) + " |"


def _heading(result):
    name = result["gpu"].replace("NVIDIA ", "").split()[0]
    return f"{result['library']}, {result['gpus_used']} × {name}"


def _answer(result, name):
    for entry in result["questions"]:
        if entry["name"] == name:
            return f"not run: {entry['not_run']}" if "not_run" in entry else entry["answer"]
    return "–"


def tables(questions, found):
    if not found:
        return "Nothing has been measured yet.\n"
    lines = ["| library | measured | GPU | driver | CUDA |", "|---|---|---|---|---|"]
    for result in found:
        gpus = f"{result['gpus_used']} × {result['gpu']}"
        lines.append(_row([result["library"], result["date"], gpus, result["driver"], result["cuda"]]))
    for topic in dict.fromkeys(question.topic for question in questions):
        lines += ["", f"### {topic}", ""]
        lines.append(_row(["question", "PEs", "what is done", *(_heading(result) for result in found)]))
        lines.append("|" + "---|" * (3 + len(found)))
        for question in questions:
            if question.topic == topic:
                answers = [_answer(result, question.name) for result in found]
                lines.append(_row([f"`{question.name}`", question.pes, question.about, *answers]))
    return "\n".join(lines) + "\n"


def rewritten(text, questions, found):
    """The page's text with new tables between its markers."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"the page must have one line `{BEGIN}` and, below it, one line `{END}`")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{tables(questions, found)}\n{END}{after}"
