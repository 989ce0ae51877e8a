# SPDX-License-Identifier: Apache-2.0
"""`gpumemtrace fit --ranks` with a few ranks run and the others simulated, compared with all ranks run: the sizes of all allocations of each rank,
in order, and the peak. Goes on where it stopped; with --write the table of docs/fit.md.

Usage: .venv-frameworks/bin/python tests/fit/worlds.py ROWS.jsonl [--case NAME]... [--write]"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOL = str(ROOT / "build/gpumemtrace")
MIB = 1 << 20
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
ENV.update(OMP_NUM_THREADS="1", PYTHONUNBUFFERED="1")
CASES = {"DDP": (["ddp"], 4), "DDP with ZeroRedundancyOptimizer": (["zero_redundancy"], 4), "FSDP1": (["fsdp1"], 4), "FSDP2": (["fsdp2"], 4),
         "FSDP2, replicated": (["hsdp"], 8), "tensor parallel": (["tensor_parallel"], 4), "FSDP2 and tensor parallel": (["two_dimensions"], 4),
         "the same, NCCL bound to a device": (["two_dimensions", "bound"], 8), "pipeline, 1F1B": (["pipeline"], 4), "experts, all-to-all": (["experts"], 4),
         "FSDP2, objects by gloo": (["gloo"], 4), "FSDP2, default backend": (["fsdp2", "default"], 4),
         "DeepSpeed ZeRO-1": (["zero1"], 4), "DeepSpeed ZeRO-2": (["zero2"], 4), "DeepSpeed ZeRO-3": (["zero3"], 4),
         "torchtitan, FSDP2": (["titan.py"], 4), "torchtitan, FSDP2 and tensor parallel": (["titan.py", "tensor_parallel=2"], 4),
         "torchtitan, pipeline and FSDP2": (["titan.py", "pipeline_parallel=2"], 4),
         "torchtitan, pipeline, FSDP2 and tensor parallel": (["titan.py", "pipeline_parallel=2", "tensor_parallel=2"], 8)}


def fit(ranks, arguments):
    """By rank: sizes of all blocks in their order, the peak."""
    program = [arguments[0]] if arguments[0].endswith(".py") else ["world_programs.py", arguments[0]]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([TOOL, "fit", "--json", "--steps", "2", "--ranks", ranks, "--cards", "h100-80g", "-o", folder, "--", sys.executable,
                               str(HERE / program[0]), *program[1:], *arguments[1:]], env=ENV, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr + "".join(p.read_text()[-3000:] for p in Path(folder).glob("*.log"))
        return {rank: seen for rank, seen in map(of_recording, Path(folder).glob("*.gmt"))}, json.loads(done.stdout)["cards"][0]


def of_recording(path):
    said = subprocess.run([TOOL, "dump", "--defs", path], capture_output=True, text=True).stdout
    rank = int(re.search(r"env\.RANK\nvalue +(\d+)", said)[1])
    sizes, live, peak = [], 0, 0
    for line in subprocess.run([TOOL, "dump", path], capture_output=True, text=True).stdout.splitlines():
        kind = line.split(" ", 3)[2]
        if kind in ("block_alloc", "block_free"):
            size = int(re.search(r" size=(\d+)", line)[1])
            live += size if kind == "block_alloc" else -size
            peak = max(peak, live)
            if kind == "block_alloc":
                sizes.append(size)
    return rank, (sizes, peak)


def measure(name):
    arguments, n = CASES[name]
    picked = [0, n // 2, n - 1]
    real, _ = fit(str(n), arguments)
    alone, _ = fit(f"{n}:{','.join(map(str, picked))}", arguments)
    row = dict(case=name, ranks=n, rows=[])
    for rank in picked:
        (a, peak_a), (b, peak_b) = real[rank], alone[rank]
        shared = min(len(a), len(b))  # a run is ended once its peak has settled, now a little earlier, now later
        same = next((i for i in range(shared) if a[i] != b[i]), shared)
        row["rows"].append(dict(rank=rank, peak_real=peak_a, peak=peak_b, allocations=shared, same=same, ended=abs(len(a) - len(b))))
    large, card = fit("512", arguments)
    row["large"] = {rank: peak for rank, (_, peak) in sorted(large.items())}
    row["card"] = {k: card[k] for k in card if k.endswith("_bytes")}
    return row


def table(rows):
    yield "| Program | Ranks | Rank | Peak, all ranks run | Peak, others simulated | Allocations that are the same | Rank of 512: peak |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in rows:
        large = list(row["large"].items())
        for i, one in enumerate(row["rows"]):
            yield (f"| {row['case'] if not i else ''} | {row['ranks'] if not i else ''} | {one['rank']} | {one['peak_real'] / MIB:.1f} MiB | {one['peak'] / MIB:.1f} MiB | "
                   f"{one['same']} of {one['allocations']} | {large[i][0]}: {large[i][1] / MIB:.1f} MiB |")


def write(rows):
    page = ROOT / "docs/fit.md"
    text = page.read_text()
    lines = "\n".join(table(rows))
    page.write_text(re.sub(r"(<!-- worlds -->\n).*(<!-- end of worlds -->)", lambda m: m[1] + lines + "\n" + m[2], text, flags=re.S))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("rows", type=Path)
    p.add_argument("--case", action="append")
    p.add_argument("--write", action="store_true")
    a = p.parse_args()
    known = {r["case"]: r for r in map(json.loads, a.rows.read_text().splitlines())} if a.rows.exists() else {}
    for name in a.case or CASES:
        if name in known and not a.case:
            continue
        try:
            known[name] = measure(name)
        except AssertionError as error:
            print(name, "failed:", str(error)[-3000:], flush=True)
            continue
        a.rows.write_text("".join(json.dumps(known[c]) + "\n" for c in CASES if c in known))
        print(json.dumps(known[name]), flush=True)
    if a.write:
        write([known[c] for c in CASES if c in known])


if __name__ == "__main__":
    main()
