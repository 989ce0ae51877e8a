# SPDX-License-Identifier: Apache-2.0
"""Verdicts of `gpumemtrace fit` against the same program run to its end on the same simulated card.

The truth of a run, without gpumemtrace in it, is one of three:

- does not fit: memory was refused and the program did not go on from that. It died of it, or gave up, with whatever exit
  code, also if it left out every batch and ended well. Only programs that say `goes_on` below did their work all the same.
- failed: it ended with another exit code than 0, or by a signal, for any other reason.
- fits: all others.

A verdict is right if it is that word. Three cells allow another one:

- `leaks`, and the run fits to its end: "not stable" is right, as the leak refuses the next longer run. So is "fits" if fit ran
  it to the same end; a run that was cut short earlier cannot say so.
- `leaks` or `grows`, and the run died of it: "not stable" is right, as memory rose until it was refused. "fits" is not.
- `grows`, and the run fits: "fits" only. Growth that ends is no leak, however long it lasts.

A saw of the garbage collector is no leak: it falls. Memory that a program takes late (an evaluation at its end) counts, and so does an
error at its end. What a refusal costs (a smaller batch, skipped batches) is not judged: the program went on, so it fits."""
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
KINDS = ("leaks", "growth", "late", "compiles", "failures", "refusals")
# Libraries say it in other words: cuDNN has no engine left where none of them gets its workspace.
REFUSED = ("OutOfMemoryError", "out of memory", "find an engine", "ALLOC_FAILED")


@dataclass
class Program:
    name: str
    kind: str
    command: list
    text: str = ""
    traits: set = field(default_factory=set)


def decorated(path):
    """Programs of a file of programs/, read without running it."""
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
    """How a run ended, what the device had in use at most, and what PyTorch counted."""
    code: int
    refused: bool
    device: int
    counted: dict
    last: str


def said_by(output, word):
    lines = [x for x in output.splitlines() if x.startswith(word + " ")]
    return json.loads(lines[-1].split(" ", 1)[1]) if lines else {}


def run(program, on, *more):
    """To its end, with the simulated device alone."""
    libraries = ROOT / "build"
    with tempfile.TemporaryDirectory(prefix="fit-judge.") as folder:
        usage = Path(folder, "usage")
        usage.touch()
        env = dict(ENV, LD_PRELOAD=str(libraries / "libsimgpu.so"), LD_LIBRARY_PATH=str(libraries / "simgpu"), SIMGPU_CARD=on,
                   SIMGPU_USAGE=str(usage), TORCHINDUCTOR_CACHE_DIR=f"{folder}/inductor")
        done = subprocess.run([*program.command, *more], env=env, cwd=folder, capture_output=True, text=True, timeout=900)
        numbers = struct.unpack_from("=6Q", usage.read_bytes().ljust(48, b"\0"))
    counted = said_by(done.stdout, "TRUTH") or said_by(done.stdout, "ESTIMATE")
    words = any(w in done.stderr + done.stdout for w in REFUSED)
    lines = done.stderr.strip().splitlines() or [""]
    return End(done.returncode, bool(counted.get("ooms")) or words, numbers[5], counted, lines[-1])


def truth(program, end):
    if end.refused and "goes_on" not in program.traits:
        return "does not fit"
    return "failed" if end.code else "fits"


@dataclass
class Said:
    """What `fit` said of one card."""
    verdict: str
    to_end: bool = False
    seconds: float = 0
    card: dict = field(default_factory=dict)


EXIT = {"fits": 0, "does not fit": 1, "not stable": 1, "failed": 3}


def ask(tool, program, on, limit=900):
    began = time.time()
    with tempfile.TemporaryDirectory(prefix="fit-judge.") as folder:
        asked = subprocess.Popen([tool, "fit", "--json", "--cards", on, "--", *program.command], cwd=folder, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=dict(ENV, TORCHINDUCTOR_CACHE_DIR=f"{folder}/inductor"))
        try:
            out, err = asked.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            asked.send_signal(signal.SIGINT)  # it ends what it started
            asked.communicate()
            return Said(f"nothing in {limit} s", seconds=limit)
    seconds = round(time.time() - began, 1)
    said = json.loads(out)["cards"][0] if out.startswith("{") else {"error": err.strip()[-600:]}
    verdict = said.get("verdict", "failed")
    if EXIT.get(verdict) != asked.returncode or said.get("fits", False) != (verdict == "fits"):
        verdict += f" with exit code {asked.returncode}"
    return Said(verdict, not said.get("settled", False), seconds, said)


def is_right(program, end, verdict, to_end):
    if "leaks" in program.traits and end == "fits":
        return verdict == "not stable" or (verdict == "fits" and to_end)
    if program.traits & {"leaks", "grows"} and end == "does not fit":
        return verdict in ("not stable", "does not fit")
    return verdict == end
