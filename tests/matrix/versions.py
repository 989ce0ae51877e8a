# SPDX-License-Identifier: Apache-2.0
"""Every PyTorch minor version from 2.1: which functions that the library hooks it has, and whether what they say equals what
PyTorch says. Each wheel is unpacked, used once on the simulated device and removed; NVIDIA's libraries are not downloaded:
empty ones in their place, as the simulated device answers in their names.

Usage: .venv/bin/python tests/matrix/versions.py [--table FILE] [2.1 2.1.2+cu118 ...]
A wheel for another CUDA than the package index offers by itself is taken where pip's own settings name an index that has it."""
import argparse
import collections
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "build/matrix"
MINORS = range(1, 16)
OTHER_CUDA = ["2.1.2+cu118", "2.7.1+cu118"]
NEEDS = ["numpy<2", "typing_extensions", "filelock", "sympy", "networkx", "jinja2", "fsspec", "setuptools"]
OWN_POOL = 1 << 8  # flag of a graph_begin that is of no capture
LAYOUTS = (ROOT / "shim/torch/torch_versions.def").read_text()

# What a hook is for, and what its names contain; the first name that a version has is the one that is used.
HOOKS = {
    "blocks": ["reportMemoryUsageToProfiler"], "refusals": ["reportOutOfMemoryToProfiler"],
    "sizes": ["13empty_genericE", "21empty_strided_genericE", "17resize_bytes_cuda"],
    "leaves": ["14AccumulateGradC1"], "gradients": ["14AccumulateGrad5apply"],
    "saved": ["13SavedVariableC1"], "releases": ["13SavedVariable10reset_data"],
    "nodes": ["17evaluate_function"], "ranges": ["17addGlobalCallback"], "graphs": ["13capture_begin"],
    "pools": ["MemPool2idE"], "Functions": ["10deleteNode"],
}


def pip(target, *packages):
    """None, or why they could not be had."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", target, "--no-deps", *packages]
    done = subprocess.run(command, capture_output=True, text=True)
    said = (done.stderr.strip().splitlines() or ["?"])[-1]
    return None if done.returncode == 0 else "no such wheel in the package index" if "No matching distribution" in said else said


def common():
    folder = HERE / "common"
    if not (folder / "complete").exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", folder, *NEEDS]
        subprocess.run(command, check=True)
        (folder / "complete").touch()
    return folder


def lines(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()


def stand_ins(lib):
    """Libraries that torch names and that are not there: empty, but for cudart's, which has all that is called."""
    files = [f for f in lib.iterdir() if ".so" in f.name]
    called = sorted({n for n in (line.split()[-1].split("@")[0] for line in lines("nm", "-D", "--undefined-only", *files) if " U " in line)
                     if re.match("cu|nccl|nv|CU", n)})
    needed = {m[1] for line in lines("readelf", "-d", *files) if (m := re.search(r"NEEDED.*\[(lib(?:cu|nccl|nv)[^\]]*)\]", line))}
    for name in sorted(needed - {f.name for f in files} - {"libcuda.so.1"}):
        text = "".join(f"int {n}(void) {{ return 0; }}\n" for n in called) if "cudart" in name else ""
        subprocess.run(["gcc", "-w", "-shared", "-nostdlib", f"-Wl,-soname,{name}", "-o", lib / name, "-x", "c", "-"], input=text, text=True, check=True)


def exported(lib):
    """Names that torch's libraries define."""
    files = [lib / name for name in ("libc10.so", "libc10_cuda.so", "libtorch_cpu.so", "libtorch_cuda.so", "libtorch_python.so")]
    return {line.split()[-1] for line in lines("nm", "-D", "--defined-only", *[f for f in files if f.exists()]) if line}


def hooks_of(lib):
    ours = re.findall(r"^EXPORT\((_Z\w+)\)", (ROOT / "shim/hooks.def").read_text(), re.M)
    ours += ["_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE"]
    there = exported(lib)
    return {what: [any(part in name and name in there for name in ours) for part in parts] for what, parts in HOOKS.items()}


def record(folder, packages):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
    env.update(PYTHONPATH=f"{folder}:{packages}", OMP_NUM_THREADS="1")
    command = [ROOT / "build/gpumemtrace", "run", "-q", "--sim", "h100-80g", "-o", folder / "run.gmt", "--", sys.executable,
               ROOT / "tests/matrix/program.py", folder / "truth.json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the program ended with {done.returncode}: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    events = [json.loads(line) for line in lines(ROOT / "build/gpumemtrace", "dump", folder / "run.gmt", "--json") if line]
    report = json.loads("".join(lines(ROOT / "build/gpumemtrace", "report", folder / "run.gmt", "--json")))
    return events, report, json.loads((folder / "truth.json").read_text())


def held_at(events, name):
    """Addresses of tensors that are saved and not released when a range begins."""
    held, address = collections.Counter(), {}
    for e in events:
        if e.get("kind") == "tag_saved":
            held[e["arg0"]] += 1
            address[e["arg0"]] = e["addr"]
        elif e.get("kind") == "tag_released":
            held[e["arg0"]] -= 1
        elif e.get("kind") == "range_begin" and e["name"] == name:
            return sorted(address[t] for t, n in held.items() for _ in range(n))
    return None


def asked(events):
    sizes = {}
    for e in events:
        if e.get("kind") in ("block_alloc", "tag_asked"):
            sizes[e["addr"]] = e["size"]
    return sizes


def judge(events, report, truth):
    """For each thing that is recorded whether it is what PyTorch said."""
    of = collections.defaultdict(list)
    for e in events:
        of[e.get("kind")].append(e)
    names = [e["name"] for e in of["range_begin"]]
    device, sizes = report["devices"][0], asked(events)
    leaves = {e["addr"] for e in of["tag_leaf"]}
    return {
        "blocks": (device["peak_bytes"], device["peak_reserved_bytes"], device["end_bytes"], report["allocs"]) ==
                  (truth["peak"], truth["reserved"], truth["left"], truth["allocations"]),
        "refusals": [e["size"] for e in of["block_oom"]] == [truth["refused"]],
        "sizes": len(truth["asked"]) > 5 and all(sizes[int(a)] == n for a, n in truth["asked"].items() if int(a)),
        "leaves": set(truth["leaves"]) <= leaves,
        "gradients": set(truth["grads"]) <= {e["addr"] for e in of["tag_grad"]},
        "saved": held_at(events, "saved all") == truth["saved"],
        "releases": bool(of["tag_released"]) and held_at(events, "released all") == [],
        "Functions": held_at(events, "released all") == [],
        "moved": [e["addr"] for e in of["tag_moved"]] == truth["moved"],
        "nodes": set(truth["nodes"]) <= {e["name"] for e in of["block_alloc"] if e["scope"]},
        "ranges": [n for n in truth["ranges"] if names.count(n) != 1] == [],
        "graphs": [len([e for e in of[k] if not e["flags"] & OWN_POOL]) for k in ("graph_begin", "graph_end")] == [truth["graphs"]] * 2,
        "pools": bool(truth["pools"]) and
                 [[e["arg0"], e["arg1"]] for e in of["graph_begin"] if e["flags"] & OWN_POOL] == truth["pools"],
    }


def row(version):
    folder = HERE / version
    shutil.rmtree(folder, ignore_errors=True)
    try:
        trouble = pip(folder, f"torch=={version}" + ("" if "+" in version else ".*"))
        if trouble:
            return {"trouble": trouble}
        lib = folder / "torch/lib"
        stand_ins(lib)
        hooks = hooks_of(lib)
        events, report, truth = record(folder, common())
        return {"version": truth["version"], "cuda": truth["cuda"], "hooks": hooks, "seen": judge(events, report, truth)}
    except (RuntimeError, subprocess.CalledProcessError) as e:
        return {"trouble": str(e)}
    finally:
        if not os.environ.get("GPUMEMTRACE_TEST_KEEP"):
            shutil.rmtree(folder, ignore_errors=True)


COLUMNS = {
    "blocks": "blocks", "refusals": "failed allocations", "sizes": "sizes asked for", "leaves": "parameters", "gradients": "gradients", "saved": "saved tensors",
    "releases": "their release", "Functions": "of Functions in Python", "moved": "moved parameters", "nodes": "backward nodes", "ranges": "ranges",
    "graphs": "CUDA graphs", "pools": "pools of the program"}


def cell(said, column):
    there = said["hooks"].get(column, [True])
    if said["seen"][column]:
        return "yes"
    return "**wrong**" if all(there) else "no hook"


def table(rows):
    out = ["| PyTorch | CUDA | " + " | ".join(COLUMNS.values()) + " |", "|" + "---|" * (len(COLUMNS) + 2)]
    for version, said in rows.items():
        if "trouble" in said:
            number, _, cuda = version.partition("+")
            out.append(f"| {number} | {cuda.replace('cu118', '11.8')} | {said['trouble']} |" + " |" * (len(COLUMNS) - 1))
        else:
            out.append(f"| {said['version'].split('+')[0]} | {said['cuda']} | " + " | ".join(cell(said, c) for c in COLUMNS) + " |")
    return "\n".join(out)


def write(file, rows):
    text = file.read_text()
    made = f"<!-- made by make test-matrix, {datetime.date.today()} -->\n\n{table(rows)}\n\n<!-- end -->"
    file.write_text(re.sub(r"<!-- made by make test-matrix.*?<!-- end -->", lambda _: made, text, flags=re.S))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--table", type=Path, help="writes the rows of all versions so far into this document")
    options.add_argument("--again", action="store_true", help="also versions that were tried before with this build")
    options.add_argument("version", nargs="*")
    options = options.parse_args()
    HERE.mkdir(parents=True, exist_ok=True)
    every = [f"2.{minor}" for minor in MINORS] + OTHER_CUDA
    kept = HERE / "rows.json"
    rows = json.loads(kept.read_text()) if kept.exists() else {}
    for version in options.version or every:
        if version not in rows or options.again or options.version:
            rows[version] = row(version)
            print(version, json.dumps(rows[version].get("trouble") or rows[version]["seen"]), flush=True)
            kept.write_text(json.dumps(rows))
    rows = {v: rows[v] for v in every if v in rows}
    if options.table:
        write(options.table, rows)
    return any("seen" in said and "**wrong**" in (cell(said, c) for c in COLUMNS) for said in rows.values())


if __name__ == "__main__":
    sys.exit(main())
