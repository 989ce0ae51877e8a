#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Part of gpu-check.sh: figures that only a card can tell.

outside      memory outside the framework after each kind of work, on the card and on the simulated one
workspaces   what cuDNN asks for, convolution by convolution, where it is not what was asked for before
cost         a step of GPT-2 with nothing, with the recorder, with CUPTI too, and with PyTorch's own recorder
refused      a request that the card refuses: what oom says, beside the simulated card's, and what its remedies do
tools        other tools that use CUPTI or inject code, with the recorder there
"""
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpu_peaks import HF, ROOT, TOOL, card, environment

SECONDS = 60  # for one program
ROUNDS = 3


def run(*command, **settings):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=SECONDS, env=environment(**settings))


def recorded(work, program, simulated=False, **settings):
    """(what the program printed, the recording) of a program under the recorder."""
    out = work / f"{program.stem}{'-sim' if simulated else ''}.gmt"
    out.unlink(missing_ok=True)
    done = run(TOOL, "run", "-q", *(["--sim", card()] if simulated else []), "-o", out, "--", sys.executable, program, **settings)
    if done.returncode and "OutOfMemoryError" not in done.stderr:
        print(f"{program.stem} ended with {done.returncode}: {' '.join(done.stderr.split())[-300:]}\n")
    return done.stdout, out


def report(recording):
    return json.loads(run(TOOL, "report", "--json", recording).stdout)


def table(*head):
    print("| " + " | ".join(head) + " |")
    print("|---" * len(head) + "|")


def row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


# ---- outside ----

OUTSIDE = '''
import warnings
warnings.simplefilter("ignore")
import torch, torch.nn as nn, torch.nn.functional as F
def used():
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return (total - free - torch.cuda.memory_reserved()) / 2**20
def say(name): print(f"{name}|{used():.1f}", flush=True)
torch.cuda.init(); say("context")
a = torch.ones(1 << 20, device="cuda"); say("first kernel")
m = torch.randn(1024, 1024, device="cuda", requires_grad=True); say("random numbers")
y = m @ m; say("product in float32: a handle of cuBLAS")
y.sum().backward(); say("its backward pass: a handle of autograd's thread")
h = nn.Linear(1024, 1024, device="cuda", dtype=torch.bfloat16)
x = torch.randn(512, 1024, device="cuda", dtype=torch.bfloat16)
h(x).float().sum().backward(); say("linear layer in bfloat16: cuBLASLt")
q = torch.randn(2, 8, 512, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
F.scaled_dot_product_attention(q, q, q, is_causal=True).float().sum().backward(); say("flash attention, both passes")
c = nn.Conv2d(16, 32, 3, device="cuda"); i = torch.randn(8, 16, 64, 64, device="cuda")
o = c(i); say("convolution: a handle of cuDNN")
o.sum().backward(); say("its backward pass")
nn.LSTM(128, 256, 2, device="cuda")(torch.randn(16, 8, 128, device="cuda"))[0].sum().backward(); say("LSTM, both passes")
p = [nn.Parameter(torch.randn(256, 256, device="cuda")) for _ in range(16)]
for t in p: t.grad = torch.randn_like(t)
torch.optim.AdamW(p).step(); say("AdamW, foreach")
torch.optim.AdamW(p, fused=True).step(); say("AdamW, fused")
torch.sort(a); torch.topk(a, 10); torch.cumsum(a, 0); say("sort, topk, cumsum")
torch.fft.rfft(a); say("FFT")
torch.linalg.solve(m.detach(), y.detach()); say("solve: cuSOLVER")
s = torch.cuda.Stream()
with torch.cuda.stream(s): y @ y
say("product on another stream")
g = torch.cuda.CUDAGraph()
with torch.cuda.graph(g): z = a * 2
g.replay(); say("captured graph")
torch.compile(lambda t: (t * 2).relu().sum())(a); say("compiled kernel (Triton)")
import tempfile, torch.distributed as dist
dist.init_process_group("nccl", f"file://{tempfile.mkdtemp()}/store", rank=0, world_size=1, device_id=torch.device("cuda", 0)); dist.all_reduce(a); say("NCCL, one rank")
'''


def steps(text):
    return [(name, float(mib)) for name, mib in (line.split("|") for line in text.splitlines() if "|" in line)]


def outside(work):
    program = work / "outside.py"
    program.write_text(OUTSIDE)
    with ThreadPoolExecutor() as pool:
        simulated = pool.submit(recorded, work, program, True)
        real, recording = recorded(work, program)
        simulated = dict(steps(simulated.result()[0]))
    alone = dict(steps(run(sys.executable, program).stdout))
    table("after", "on the card, MiB", "added", "without the recorder", "simulated", "added")
    before = 0, 0
    for name, mib in steps(real):
        sim = simulated.get(name, 0)
        row(name, f"{mib:.0f}", f"{mib - before[0]:.0f}", f"{alone.get(name, 0):.0f}", f"{sim:.0f}", f"{sim - before[1]:.0f}")
        before = mib, sim
    print("\nWhat the recording says of it:\n\n```")
    print(run(TOOL, "report", recording).stdout)
    print(run(TOOL, "verify", recording).stdout + "```")


# ---- workspaces ----

def workspaces(work):
    """Lines that differ from tests/data/cudnn-h100.txt, which the simulated device is held against (tests/e2e/test_cudnn.py). `make cudnn-table
    CARD=NAME` keeps those of another card."""
    said = run(sys.executable, ROOT / "tests/workloads/workspaces.py").stdout.splitlines()
    kept = (ROOT / "tests/data/cudnn-h100.txt").read_text().splitlines()
    print(f"{len(said)} lines, of which {len(set(said) - set(kept))} are not those of tests/data/cudnn-h100.txt:\n\n```")
    print("\n".join(line for line in said if line not in set(kept)) + "\n```")


# ---- cost ----

def cost(work):
    training = ROOT / "tests/bench/training.py"
    out, snapshot = work / "cost.gmt", work / "cost.pickle"
    mine = {"LD_PRELOAD": str(ROOT / "build/libgpumemtrace.so"), "GPUMEMTRACE_OUTPUT": str(out)}
    variants = {"nothing": ([], {}), "gpumemtrace": ([], mine), "gpumemtrace and CUPTI": ([], mine | {"GPUMEMTRACE_CUPTI": "1"}), "PyTorch's recorder": ([snapshot], {})}
    best = {}
    for _ in range(ROUNDS):
        for name, (arguments, settings) in variants.items():
            out.unlink(missing_ok=True)
            done = run(sys.executable, training, "gpt2", 40, *arguments, **settings)
            if done.returncode:
                best[name] = float("nan")
                print(f"{name}: {done.stderr[-200:]}")
                continue
            best[name] = min(best.get(name, 1e9), float(done.stdout.split()[-1]))
    table("GPT-2, 4 x 512 tokens, float32", "ms a step, best", "to nothing")
    for name, ms in best.items():
        row(name, f"{ms:.2f}", f"{ms / best['nothing']:.4f}")


# ---- tools ----

PROFILED = '''
import torch
from torch.profiler import profile, ProfilerActivity
m = torch.nn.Linear(512, 512, device="cuda")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as p:
    for _ in range(3): m(torch.randn(64, 512, device="cuda")).sum().backward()
    torch.cuda.synchronize()
print("kernels", sum(e.device_type == torch.autograd.DeviceType.CUDA for e in p.events()), "peak", torch.cuda.max_memory_allocated())
'''
JAX = '''
import os
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax, jax.numpy as jnp
x = jnp.ones((4096, 4096), jnp.float32); y = (x @ x).sum().block_until_ready()
print("jax", jax.devices()[0].memory_stats())
'''
CUPY = '''
import cupy
x = cupy.random.rand(4096, 4096); y = x @ x; cupy.cuda.Device().synchronize()
print("cupy", cupy.get_default_memory_pool().total_bytes(), cupy.get_default_memory_pool().used_bytes())
'''


def attempt(name, work, text, prefix=(), **settings):
    program = work / f"with_{name.split()[0]}.py"
    program.write_text(text)
    out = work / "tools.gmt"
    out.unlink(missing_ok=True)
    try:
        done = run(TOOL, "run", "-q", "-o", out, "--", *prefix, sys.executable, program, **settings)
    except subprocess.TimeoutExpired:
        row(name, "no end", "", "")
        return
    said = [x for x in done.stdout.splitlines() if x.split()[:1] and x.split()[0] in ("kernels", "jax", "cupy")]
    noted = [x for x in done.stderr.splitlines() if "gpumemtrace" in x]
    held = ""
    if out.exists():
        held = ", ".join(f"{d['peak_bytes']} allocated, {d.get('peak_reserved_bytes')} reserved" for d in report(out)["devices"])
    row(name, done.returncode, " ".join(said)[:300], held, " ".join(noted)[:200] or (done.stderr.strip().splitlines() or [""])[-1][:200] if done.returncode else "")


def tools(work):
    table("program", "exit code", "it says", "peak of the recording", "messages")
    attempt("profiler of PyTorch", work, PROFILED)
    attempt("profiler of PyTorch, recorder with CUPTI", work, PROFILED, GPUMEMTRACE_CUPTI="1")
    attempt("jax", work, JAX)
    attempt("jax, CUPTI", work, JAX, GPUMEMTRACE_CUPTI="1")
    attempt("cupy", work, CUPY)
    for tool, flags in (("ncu", ("--target-processes", "all", "-c", "2")), ("compute-sanitizer", ())):
        path = shutil.which(tool) or next(iter(Path("/opt").glob(f"nvidia/*/*/{tool}")), None)
        if path:
            attempt(f"cupy under {tool}", work, CUPY, (path, *flags))
            attempt(f"cupy under {tool}, CUPTI", work, CUPY, (path, *flags), GPUMEMTRACE_CUPTI="1")


# ---- refused ----

# The card is full at this batch. Arguments: what is changed, by the name of oom's remedy.
REFUSED = HF + '''
import sys, torch
remedy = sys.argv[1] if len(sys.argv) > 1 else ""
m = llama(2048, 8192, 16, 32, 8)
batch = 14
if remedy == "checkpoint": m.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
if remedy == "smaller_batch": batch //= 2
if remedy == "offload_activations":
    forward = m.forward
    def offloaded(*a, **k):
        with torch.autograd.graph.save_on_cpu(): return forward(*a, **k)
    m.forward = offloaded
language(m, batch, 4096, n=2)
print("passed", torch.cuda.max_memory_allocated())
'''


def refused(work):
    """What `oom` says of a refusal of the card, of the same refusal on the simulated card, and what its remedies do on the card."""
    program = work / "refused.py"
    program.write_text(REFUSED)
    with ThreadPoolExecutor() as pool:
        simulated = pool.submit(recorded, work, program, True)
        real = recorded(work, program)[1]
        simulated = simulated.result()[1]
    said, there = (json.loads(run(TOOL, "oom", "--json", x).stdout) for x in (real, simulated))
    print("```\n" + run(TOOL, "oom", real).stdout + "```\n")
    table("", "on the card", "simulated")
    for name in ("cause", "asked_bytes", "allocated_bytes", "reserved_bytes", "context_bytes", "phase", "function", "line"):
        row(name, said[name], there[name])
    print()
    table("remedy", "saves, GiB", "is enough", "simulated", "on the card it")
    known = {r["name"]: r for r in there["remedies"]}
    for r in said["remedies"]:
        tried = ""
        if f'"{r["name"]}"' in REFUSED:
            done = run(sys.executable, program, r["name"])
            tried = done.stdout.strip() or f"ended with {done.returncode}"
        row(r["name"], f"{r['saves_bytes'] / 2**30:.2f}", r["enough"], known.get(r["name"], {}).get("enough", "not said"), tried)


PARTS = {"outside": outside, "workspaces": workspaces, "refused": refused, "cost": cost, "tools": tools}


def main():
    work = Path(sys.argv[1])
    for name in sys.argv[2:] or PARTS:
        print(f"\n### {name}\n", flush=True)
        try:
            PARTS[name](work)
        except Exception as error:
            print(f"failed: {error!r}"[:600], flush=True)


if __name__ == "__main__":
    main()
