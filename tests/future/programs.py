# SPDX-License-Identifier: Apache-2.0
"""The programs whose futures are asked, by name: how each is started. Those of ../shared/reports only where they lie there, those of
frameworks only where the packages are."""
import importlib.util
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS, REPORTS = ROOT / "tests", ROOT.parent / "shared/reports"
ELSEWHERE = {"graph_pools", "late_snapshots"}  # captured graphs, whose blocks the cuts do not stage; no programs
SEVERAL = "init_process_group|devices: [2-9]|cuda:1|torch.distributed|mp.spawn"
REFUSED = {"validation", "retained_graph", "evaluation_graph", "growing", "outputs", "kv_cache", "batch_grows", "optimizer_temporaries", "activation_spike"}


def functions(file):
    """Programs by functions of their names, each under a decorator. Those of `shard_state` want several devices."""
    return re.findall(r'^@case\((?!"shard_state")[^)]*\)\ndef (\w+)', file.read_text(), re.M)


def of_frameworks():
    """Programs of one process that Python starts."""
    for file in sorted((TESTS / "frameworks/programs").glob("*.py")):
        says = dict(re.findall(r"^# (\w+): (.+)$", file.read_text(), re.M))
        if "launch" not in says and "1" in says.get("ranks", "1").split() and all(map(importlib.util.find_spec, says.get("needs", "").split())):
            yield file


def programs():
    """name -> command, and the settings of its environment."""
    found = {}
    for name in re.findall(r'^    "([\w-]+)": \(', (TESTS / "fit/cases.py").read_text(), re.M):
        found[f"fit/{name}"] = [TESTS / "fit/cases.py", name]
    for file in sorted((TESTS / "classes").glob("case_*.py")):
        if not re.search(SEVERAL, file.read_text()):
            found[f"classes/{file.stem[5:]}"] = [file]
    for file in ("cases", "never"):
        for name in functions(TESTS / f"advise/{file}.py"):
            found[f"advise/{name}"] = [TESTS / f"advise/{file}.py", name]
    for file in ("loops", "held"):
        for name in functions(TESTS / f"future/{file}.py"):
            found[f"future/{name}"] = [TESTS / f"future/{file}.py", name]
    for name in sorted(REFUSED):
        found[f"oom/{name}"] = [TESTS / "workloads/oom.py", name, "truth"]
    for name in re.findall(r"^def (\w+)\(\):\n    from", (TESTS / "bench/training.py").read_text(), re.M):
        found[f"bench/{name}"] = [TESTS / "bench/training.py", name, "3"]
    found["examples/train"] = [ROOT / "examples/train.py"]
    for file in of_frameworks():
        found[f"frameworks/{file.stem}"] = [file]
    for file in sorted(REPORTS.glob("*/*.py")):
        if file.parent.name not in ELSEWHERE and not re.search(SEVERAL, file.read_text()):
            found[f"reports/{file.parent.name}/{file.stem}"] = [file]
    return {name: [sys.executable, *map(str, command)] for name, command in found.items()}
