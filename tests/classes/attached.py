# SPDX-License-Identifier: Apache-2.0
"""attached.py [--case NAME]... [--json] [--wrong N]: what `gpumemtrace attach` says of the cases, which run without the recorder and without
a history of their allocator. At each mark the case waits until it has been looked at."""
import argparse
import collections
import json
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import score

HERE = Path(__file__).resolve().parent
CASES = ("adamw", "bare_tensors", "diffusion", "gan", "kv_cache", "sgd_resnet", "trainer")


def inside(case):
    """In the case's process: truth.mark says the number of its line and waits for a word."""
    import torch
    import truth
    mark, snapshot = truth.mark, torch.cuda.memory._snapshot

    def without_history(*args, **kw):
        found = snapshot(*args, **kw)
        return {**found, "device_traces": [[] for _ in found["device_traces"]]}

    def waits(name):
        mark(name)
        torch.cuda.memory._snapshot = without_history
        print(len(truth.lines) - 1, flush=True)
        sys.stdin.readline()
        torch.cuda.memory._snapshot = snapshot
    truth.mark = waits
    runpy.run_path(str(HERE / f"case_{case}.py"), run_name="__main__")


def watch(case, folder):
    """{line of the truth: recording}."""
    build = score.BUILD
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
    env.update(TRUTH=str(folder / "truth"), OMP_NUM_THREADS="1", LD_PRELOAD=str(build / "libsimgpu.so"), LD_LIBRARY_PATH=str(build / "simgpu"))
    found = {}
    with open(folder / "errors", "w") as errors, subprocess.Popen(
            [sys.executable, __file__, "--inside", case], env=env, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            text=True) as target:
        for line in target.stdout:
            if not line.strip().isdigit():
                continue
            found[int(line)] = folder / f"{int(line)}.gmt"
            done = subprocess.run([score.TOOL, "attach", str(target.pid), "-o", str(found[int(line)])], capture_output=True, text=True, timeout=600)
            if done.returncode:
                target.kill()
                raise RuntimeError(f"case {case}: {done.stderr}")
            print(file=target.stdin, flush=True)
    if target.returncode:
        raise RuntimeError(f"case {case} failed: {(folder / 'errors').read_text()[-3000:]}")
    return found


def judge(case, most):
    total, wrong = collections.Counter(), collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        found = watch(case, Path(folder))
        lines = (Path(folder) / "truth").read_text().splitlines()
        for i, line in enumerate(lines):
            score.compare(found[i], {**json.loads(line), "at": "end"}, total, wrong)
        return {"case": case + ", attached", "tags": "off", "marks": len(lines), "bytes": total["bytes"], "right": total["right"] / total["bytes"],
                "unknown": total["unknown"] / total["bytes"], "undecided_bytes": total["undecided"], "rules": score.precision.of(total),
                "wrong": score.explain(wrong, most)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", metavar="NAME")
    parser.add_argument("--inside", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--wrong", type=int, default=6, metavar="N")
    options = parser.parse_args()
    if options.inside:
        return inside(options.inside)
    results = [judge(case, options.wrong) for case in options.case or CASES]
    if options.json:
        return print(json.dumps(results))
    for result in results:
        score.show(result)
    print(score.precision.show(score.precision.gather(results)))


if __name__ == "__main__":
    sys.exit(main())
