# SPDX-License-Identifier: Apache-2.0
"""Compares the verdict of `gpumemtrace fit` with the end of the same program on the same simulated card, run without gpumemtrace.

A run ends in one of three ways:

- does not fit: it ran out of memory and did not go on from that. It died of it, or it gave up, with whatever exit code, or it left out
  every batch. Only programs marked `goes_on` do their work after the error (with a smaller batch, in parts, without some batches).
- failed: any other exit code than 0, or a signal.
- fits: all others. A program that went on after the error fits: how much work it left out does not matter here.

The right verdict is the same word. These cases needed a decision:

- A program that leaks (`leaks`) and whose run is short enough to fit: "not stable" is right, because a longer run would not fit. "fits" is right
  only if `fit` too ran the program to its end and says by how much its memory rises.
- A program that ran out of memory while its memory rose (`leaks` or `grows`): "not stable" is as right as "does not fit".
- Growth that ends before memory does (`grows`): only "fits" is right, however long the growth lasts.
- A garbage collector that frees memory now and then is no leak.
- An error at the end of the run makes it "failed", even if it fitted until then. If memory runs out first, it "does not fit"."""
import ast
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOL = str(ROOT / "build/gpumemtrace")
MIB = 1 << 20
LARGE = "h100-80g"
CONTEXT = 520 * MIB  # of that card; else it would be less on a card that is smaller
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_", "LD_PRELOAD"))}
ENV.update(OMP_NUM_THREADS="1", SIMGPU_CONTEXT=f"{CONTEXT}", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
FACTORS = (0.75, 0.9, 1.1)
KINDS = ("leaks", "growth", "long", "late", "compiles", "failures", "caught")
# Messages of programs without memory. cuDNN finds no engine if it cannot allocate the workspace of any.
OUT_OF_MEMORY = ("OutOfMemoryError", "out of memory", "find an engine", "ALLOC_FAILED")


@dataclass
class Program:
    name: str
    kind: str
    command: list
    text: str = ""
    traits: set = field(default_factory=set)


def decorated(path):
    """The programs of one file in programs/, without importing it."""
    for node in ast.parse(path.read_text()).body:
        for mark in getattr(node, "decorator_list", []):
            if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "program":
                name = node.name.replace("_", "-")
                yield Program(name, path.stem, [sys.executable, str(path), name], ast.get_docstring(node), {k.arg for k in mark.keywords})


def programs():
    names = [x.split('"')[1] for x in (HERE / "cases.py").read_text().splitlines() if x.startswith('    "') and '": (' in x]
    found = [p for kind in KINDS for p in decorated(HERE / f"programs/{kind}.py")]
    found += [Program(name, "training", [sys.executable, str(HERE / "cases.py"), name]) for name in names]
    return {p.name: p for p in found}


def card(size):
    return f"card={size}"


@dataclass
class End:
    """The end of a run, the most memory in use on the device, and PyTorch's counters."""
    code: int
    out_of_memory: bool
    device: int
    counted: dict
    last: str


def said_by(output, word):
    lines = [x for x in output.splitlines() if x.startswith(word + " ")]
    return json.loads(lines[-1].split(" ", 1)[1]) if lines else {}


def run(program, on, *more):
    """Runs it to its end on the simulated device."""
    libraries = ROOT / "build"
    with tempfile.TemporaryDirectory(prefix="fit-judge.") as folder:
        usage = Path(folder, "usage")
        usage.touch()
        env = dict(ENV, LD_PRELOAD=str(libraries / "libsimgpu.so"), LD_LIBRARY_PATH=str(libraries / "simgpu"), SIMGPU_CARD=on,
                   SIMGPU_USAGE=str(usage), TORCHINDUCTOR_CACHE_DIR=f"{folder}/inductor")
        done = subprocess.run([*program.command, *more], env=env, cwd=folder, capture_output=True, text=True, timeout=900)
        numbers = struct.unpack_from("=6Q", usage.read_bytes().ljust(48, b"\0"))
    counted = said_by(done.stdout, "TRUTH") or said_by(done.stdout, "ESTIMATE")
    words = any(w in done.stderr + done.stdout for w in OUT_OF_MEMORY)
    lines = done.stderr.strip().splitlines() or [""]
    return End(done.returncode, bool(counted.get("ooms")) or words, numbers[5], counted, lines[-1])


def truth(program, end):
    died = end.code and any(w in end.last for w in OUT_OF_MEMORY)
    if died or (end.out_of_memory and "goes_on" not in program.traits):
        return "does not fit"
    return "failed" if end.code else "fits"


@dataclass
class Said:
    """The answer of `fit` for one card."""
    verdict: str
    to_end: bool = False  # of a run that came to the program's own end
    rising: int = 0  # bytes a step, if it says so
    seconds: float = 0
    error: str = ""


EXIT = {"fits": 0, "does not fit": 1, "not stable": 1, "failed": 3}


def answer(tool, program, on, limit=900):
    """The card's row in `fit --json`, the exit code, and the seconds that it took."""
    began = time.time()
    with tempfile.TemporaryDirectory(prefix="fit-judge.") as folder:
        asked = subprocess.Popen([tool, "fit", "--json", "--cards", on, "--", *program.command], cwd=folder, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(ENV, TORCHINDUCTOR_CACHE_DIR=f"{folder}/inductor"))
        try:
            out, err = asked.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            asked.send_signal(signal.SIGINT)  # it ends what it started
            out, err = "", asked.communicate()[1]
    row = json.loads(out)["cards"][0] if out.startswith("{") else {"error": err.strip()[-600:]}
    return row, asked.returncode, round(time.time() - began, 1)


def ask(tool, program, on):
    row, code, seconds = answer(tool, program, on)
    verdict = row.get("verdict", "failed")
    if EXIT.get(verdict) != code or row.get("fits", False) != (verdict == "fits"):
        verdict += f" with exit code {code}"
    return Said(verdict, row.get("to_end", False), row.get("rising_bytes", 0), seconds, row.get("error", ""))


def is_right(program, end, said):
    if "leaks" in program.traits and end == "fits":
        return said.verdict == "not stable" or (said.verdict == "fits" and said.to_end and said.rising > 0)
    if program.traits & {"leaks", "grows"} and end == "does not fit":
        return said.verdict in ("not stable", "does not fit")
    return said.verdict == end
