# SPDX-License-Identifier: Apache-2.0
"""`make bench`: what recording costs, beside PyTorch's own recorder. Prints "name value unit" lines.

Every figure that is compared comes from this one run: rounds alternate between the variants and the
best of each counts, as other work on the machine only ever adds time. Nothing passes or fails here.
The device is simulated (GPUMEMTRACE_TEST_DEVICE=real: the machine's own).
"""
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import answers
import in_process
import lake
import others
import page

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build"
SIMULATED = os.environ.get("GPUMEMTRACE_TEST_DEVICE", "sim") != "real"
ROUNDS = 3
LAUNCHES = 6  # of a training: where its memory lies makes a process up to a fifth faster or slower for its whole life
STACKS = ("all", "python", "none")
MODELS = ("gpt2", "qwen2", "resnet50", "experts")
STEPS = 40


def environment(preload, **settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith("GPUMEMTRACE_")}
    libraries = [BUILD / "libgpumemtrace.so"] if preload else []
    if SIMULATED:
        libraries.append(BUILD / "libsimgpu.so")
        env["LD_LIBRARY_PATH"] = f"{BUILD / 'simgpu'}:{env.get('LD_LIBRARY_PATH', '')}"
        env["SIMGPU_CARD"] = "h100-80g"
    env["LD_PRELOAD"] = ":".join(map(str, libraries))
    env["OMP_NUM_THREADS"] = "1"  # kernels take no time: more threads would only disturb each other
    return env | settings


def python(script, *arguments, **options):
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


def show(name, value, unit):
    print(f"{name:<42} {value:>12} {unit}", flush=True)


def keep_best(best, output, name=None):
    for line in output.splitlines():
        variant, depth, ns = line.split()
        key = name or variant, int(depth)
        best[key] = min(best.get(key, 1e12), float(ns))


def bench_pairs(folder):
    """Cost of one allocation and its free. Leaves the recordings behind, for the readers' bench."""
    best = {}
    for _ in range(ROUNDS):
        keep_best(best, python("pairs.py", "nothing", "recorder-python", "recorder-all", env=environment(False)))
        for stacks in STACKS:
            out = folder / f"pairs-{stacks}.gmt"
            out.unlink(missing_ok=True)
            env = environment(True, GPUMEMTRACE_OUTPUT=str(out), GPUMEMTRACE_STACKS=stacks)
            keep_best(best, python("pairs.py", "nothing", env=env), f"gpumemtrace-{stacks}")
    for depth in sorted({d for _, d in best}):
        rest = best["recorder-all", depth] - best["nothing", depth]
        for (name, d), ns in best.items():
            if d == depth:
                show(f"pair.depth{d}.{name}", f"{ns:.0f}", "ns")
        ours = best["gpumemtrace-all", depth] - best["nothing", depth]
        show(f"pair.depth{depth}.added-over-recorder-all", f"{ours / rest:.2f}", "ratio")


def snapshot_entries(path):
    with open(path, "rb") as file:
        return sum(map(len, pickle.load(file)["device_traces"]))


def bench_training(folder, model):
    """Steps of a model: time, and bytes of recording."""
    times = {}
    recording, pickled = folder / f"{model}.gmt", folder / f"{model}.pickle"
    for _ in range(LAUNCHES):
        recording.unlink(missing_ok=True)
        ours = environment(True, GPUMEMTRACE_OUTPUT=str(recording))
        without = environment(True, GPUMEMTRACE_OUTPUT=str(folder / "without-uses.gmt"), GPUMEMTRACE_USES="off")
        (folder / "without-uses.gmt").unlink(missing_ok=True)
        for name, env, snapshot in (("nothing", environment(False), ()), ("gpumemtrace", ours, ()), ("without-uses", without, ()),
                                    ("recorder", environment(False), (pickled,))):
            ms = float(python("training.py", model, STEPS, *snapshot, env=env))
            times[name] = min(times.get(name, 1e9), ms)
    for name, ms in times.items():
        show(f"{model}.step.{name}", f"{ms:.2f}", "ms")
    added, rest = times["gpumemtrace"] - times["nothing"], times["recorder"] - times["nothing"]
    show(f"{model}.added-over-recorder", f"{added / rest:.2f}", "ratio")
    show(f"{model}.uses-over-recorder", f"{(times['gpumemtrace'] - times['without-uses']) / rest:.2f}", "ratio")
    show(f"{model}.added-share", f"{100 * added / times['nothing']:.1f}", "%")
    count, entries = page.events(recording), snapshot_entries(pickled)
    show(f"{model}.events.gpumemtrace", count, "events")
    show(f"{model}.events.recorder", entries, "events")
    show(f"{model}.size.gpumemtrace", f"{recording.stat().st_size / count:.1f}", "bytes/event")
    show(f"{model}.size.recorder", f"{pickled.stat().st_size / entries:.1f}", "bytes/event")


def bench_repeats(folder):
    """A longer training: its definitions, and its first steps, which nothing equals, are a smaller part of the recording."""
    recording, steps = folder / "gpt2-repeats.gmt", 10 * STEPS
    python("training.py", "gpt2", steps, env=environment(True, GPUMEMTRACE_OUTPUT=str(recording)))
    show(f"gpt2.size.{steps}-steps", f"{recording.stat().st_size / page.events(recording):.1f}", "bytes/event")


def bench_reading(folder):
    for name in ("gpt2", "pairs-all"):
        recording = folder / f"{name}.gmt"
        best = 1e9
        for _ in range(ROUNDS):
            start = time.perf_counter()
            count = page.events(recording)
            best = min(best, time.perf_counter() - start)
        show(f"report.{name}", f"{count / best:.0f}", "events/s")


def bench_answers(folder):
    """On runs of ten million events, one of which ends with a refusal."""
    refused = folder / "gpt2-refused.gmt"
    python("training.py", "gpt2", STEPS, "refused", env=environment(True, GPUMEMTRACE_OUTPUT=str(refused)))
    long, refused = (page.make_long(folder, run) for run in (folder / "gpt2.gmt", refused))
    for row in (*answers.measure(long, refused), *in_process.measure(long)):
        show(*row)


def bench_month(folder):
    """A billion events, 300,000 steps: seconds on the wall, because blocks are decoded on a second thread."""
    run = page.make_long(folder, folder / "gpt2.gmt", of=10**9)
    show("month.events", page.events(run), "events")
    show("month.size", f"{run.stat().st_size / 1e6:.0f}", "MB")
    for name, command in (("report", ("report", "--json", run)), ("page", ("html", "-o", folder / "month.html", run))):
        start = time.perf_counter()
        _, memory = answers.cost(command)
        show(f"month.{name}", f"{time.perf_counter() - start:.0f}", "s")
        show(f"month.{name}.memory", f"{memory:.0f}", "MB")
    run.unlink()


def bench_page(folder):
    """Only where there is a browser to open it."""
    if not page.BROWSER.exists() or not shutil.which("chromium"):
        return
    for row in page.measure(folder, folder / "gpt2.gmt"):
        show(*row)


def bench_lake(folder):
    """Only where DuckDB is: scripts/setup.sh tools."""
    if not lake.TOOLS.exists():
        return
    for row in lake.measure(folder, [folder / f"{model}.gmt" for model in MODELS]):
        show(*row)


def bench_others(folder):
    for row in others.measure(folder):
        show(*row)


def bench_idle():
    """A process that never touches CUDA."""
    best = {}
    for _ in range(40):
        for name in ("nothing", "gpumemtrace"):
            env = dict(os.environ)
            if name == "gpumemtrace":
                env["LD_PRELOAD"] = str(BUILD / "libgpumemtrace.so")
            start = time.perf_counter()
            subprocess.run(["/bin/true"], env=env, check=True)
            best[name] = min(best.get(name, 1e9), time.perf_counter() - start)
    show("idle.added", f"{(best['gpumemtrace'] - best['nothing']) * 1000:.2f}", "ms")


def main():
    with tempfile.TemporaryDirectory() as name:
        for model in MODELS:
            bench_training(Path(name), model)
        bench_repeats(Path(name))
        bench_idle()
        bench_pairs(Path(name))
        bench_others(Path(name))
        bench_reading(Path(name))
        bench_answers(Path(name))
        bench_page(Path(name))
        bench_lake(Path(name))
        bench_month(Path(name))


if __name__ == "__main__":
    main()
