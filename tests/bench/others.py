# SPDX-License-Identifier: Apache-2.0
"""The same C calls under recorders of other kinds: heaptrack and memray record malloc and free with native stacks, we
record cudaMalloc and cudaFree of a device of a few lines. And on many threads at once. CPU time of the calling threads."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ROUNDS = 3
THREADS = 16


def build(folder, name, *sources):
    library = folder / name
    subprocess.run(["cc", "-O2", "-fno-omit-frame-pointer", "-shared", "-fPIC", "-w", "-o", library, *map(str, sources), "-lpthread"],
                   check=True)
    return library


def calls(command, where, library, threads, preload=(), **settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith("GPUMEMTRACE_")} | settings
    env["LD_PRELOAD"] = ":".join(map(str, preload))
    done = subprocess.run([*map(str, command), HERE / "calls.py", library, where, *map(str, threads)], env=env, capture_output=True,
                          text=True, check=True)
    return {int(count): float(ns) for count, ns in (line.split() for line in done.stdout.splitlines() if line[:1].isdigit())}


def memray_python():
    """memray stands in an environment of its own as often as not."""
    found = shutil.which("memray")
    beside = found and Path(os.path.realpath(found)).parent / "python"
    return (beside if beside.exists() else sys.executable) if found else None


def variants(folder):
    """name: what calls() takes; None: it is not here."""
    ours = {"preload": [ROOT / "build/libgpumemtrace.so"], "GPUMEMTRACE_OUTPUT": str(folder / "calls.gmt")}
    memray, heaptrack = memray_python(), shutil.which("heaptrack")
    heap, device = ("heap", (0,)), ("device", (0, 1, THREADS))
    return {"heap": ([sys.executable], *heap, {}),
            "device": ([sys.executable], *device, {}),
            "gpumemtrace": ([sys.executable], *device, ours),
            "heaptrack": ([heaptrack, "-o", folder / "heaptrack", sys.executable], *heap, {}) if heaptrack else None,
            "memray": ([memray, "-m", "memray", "run", "--native", "-f", "-o", folder / "memray.bin"], *heap, {}) if memray else None}


def measure(folder):
    device = build(folder, "libcudart.so.12", ROOT / "tests/e2e/toy_cudart.c")
    library = build(folder, "libcalls.so", HERE / "c_calls.c")
    best, chosen = {}, variants(folder)
    for _ in range(ROUNDS):
        for name, variant in chosen.items():
            if variant:
                command, where, threads, settings = variant
                preload = [*settings.get("preload", ()), *([device] if where == "device" else ())]
                for count, ns in calls(command, where, library, threads, **settings | {"preload": preload}).items():
                    best[name, count] = min(best.get((name, count), 1e12), ns)
    return rows(best, chosen)


def rows(best, chosen):
    def added(threads):
        return best["gpumemtrace", threads] - best["device", threads]

    for name in chosen:
        yield (f"calls.{name}", f"{best[name, 0]:.0f}", "ns") if (name, 0) in best else (f"calls.{name}", "-", "not-installed")
    for name in ("heaptrack", "memray"):
        if (name, 0) in best:
            yield f"calls.added-over-{name}", f"{added(0) / (best[name, 0] - best['heap', 0]):.2f}", "ratio"
    for threads in (1, THREADS):
        yield f"calls.threads{threads}.gpumemtrace", f"{best['gpumemtrace', threads]:.0f}", "ns"
    yield f"calls.threads{THREADS}.added-over-one", f"{added(THREADS) / added(1):.2f}", "ratio"
