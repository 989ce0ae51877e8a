# SPDX-License-Identifier: Apache-2.0
"""Recordings of this version and tools of earlier ones, and the other way round. The commits of readers.txt are built in the user's
cache. Each records a program (whole, killed, bounded, as a snapshot that is converted) and says what it reads in it; this version
must say the same. What this version records, each earlier tool must refuse with one sentence or read alike: alone, as a rank beside
its own, as a live file, in a lake.

Usage: .venv/bin/python tests/matrix/readers.py [--table FILE] [COMMIT...]"""
import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "build/matrix/readers"
CACHE = Path(os.environ.get("GPUMEMTRACE_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpumemtrace") / "readers"
PYTHON = ROOT / ".venv/bin/python"
DUCKDB = ROOT / ".venv-tools/bin/python"
WHOLE = ROOT / "tests/matrix/program.py"
END = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
BOUNDED = """import torch
kept = []
for i in range(1000000):
    if i % 1000 == 0:
        kept.append(torch.empty(1000 + i // 1000, device="cuda"))
    x = torch.empty(100000 + i % 7, device="cuda")
del x
"""
SNAPSHOT = """import sys, torch
torch.cuda.memory._record_memory_history()
kept = [torch.empty(100000 * (i + 1), device="cuda") for i in range(20)]
del kept[5:9]
torch.cuda.memory._dump_snapshot(sys.argv[1])
"""
SORTS = ["whole", "killed", "bounded", "snapshot"]
QUERY = "SELECT recording, peak_bytes, end_bytes, allocs FROM ranks ORDER BY recording"


class Version:
    """A tool with its library, and the recordings that they made."""

    def __init__(self, name, tree):
        self.name, self.tree, self.folder = name, tree, HERE / name
        self.tool, self.library = tree / "build/gpumemtrace", tree / "build/libgpumemtrace.so"
        self.recordings = {}

    def run(self, *words):
        env = {**os.environ, "GPUMEMTRACE_PYTHON": str(DUCKDB)}
        return subprocess.run([self.tool, *map(str, words)], capture_output=True, text=True, env=env, timeout=600)

    def has(self, command):
        return f"\n  {command} " in self.run("--help").stdout

    def record(self, sort, program, *words, **settings):
        path = self.folder / f"{sort}.gmt"
        env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTORCH_"))}
        env.update(LD_PRELOAD=f"{self.library}:{ROOT / 'build/libsimgpu.so'}", LD_LIBRARY_PATH=str(ROOT / "build/simgpu"),
                   GPUMEMTRACE_OUTPUT=str(path), OMP_NUM_THREADS="1", **settings)
        subprocess.run([PYTHON, program, *words], env=env, capture_output=True, timeout=900)
        if path.exists():
            self.recordings[sort] = path

    def record_all(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        killed, bounded = self.folder / "killed.py", self.folder / "bounded.py"
        killed.write_text(WHOLE.read_text() + END)
        bounded.write_text(BOUNDED)
        self.record("whole", WHOLE, self.folder / "truth.json")
        self.record("killed", killed, self.folder / "truth_killed.json")
        self.record("bounded", bounded, GPUMEMTRACE_MAX_SIZE="4MiB")
        if self.has("import"):
            self.run("import", HERE / "snapshot.pickle", "-o", self.folder / "snapshot.gmt")
            self.recordings["snapshot"] = self.folder / "snapshot.gmt"

    def figures(self, path):
        """What report says in figures, or why it says nothing."""
        done = self.run("report", path, "--json")
        if done.returncode:
            return (done.returncode, done.stderr.strip().splitlines()[-1])
        answer = json.loads(done.stdout)
        devices = [{k: d.get(k) for k in ("device", "peak_bytes", "peak_reserved_bytes", "end_bytes", "ooms")} for d in answer["devices"]]
        return {**{k: answer[k] for k in ("events", "allocs", "frees", "dropped")}, "devices": devices}

    def ranks(self, folder):
        """Peaks by recording, or the sentence; a recording that it refuses is left out."""
        done = self.run("report", folder, "--json")
        if done.returncode:
            return (done.returncode, done.stderr.strip().splitlines()[-1])
        answer = json.loads(done.stdout)
        return {Path(r["file"]).name: r["devices"][0]["peak_bytes"] for r in answer["ranks"] if "error" not in r}


def build(commit):
    tree = CACHE / commit
    if not (tree / "complete").exists():
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir(parents=True)
        archive = subprocess.run(["git", "-C", ROOT, "archive", commit], capture_output=True, check=True)
        subprocess.run(["tar", "x"], cwd=tree, input=archive.stdout, check=True)
        print(f"building {commit}", flush=True)
        env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        compiler = ["CC=ccache gcc"] if shutil.which("ccache") else []
        targets = ["build/gpumemtrace", "build/libgpumemtrace.so"]
        if "libgpumemtrace_core.so" in (tree / "Makefile").read_text():
            targets.append("build/libgpumemtrace_core.so")
        subprocess.run(["make", f"-j{os.cpu_count()}", *compiler, "SIMGPU=no", *targets], cwd=tree, env=env, capture_output=True, check=True)
        shutil.rmtree(tree / "build/obj")
        (tree / "complete").touch()
    return Version(commit, tree)


def refused(answer):
    return isinstance(answer, tuple) and answer[0] == 3 and ("newer" in answer[1] or "update to read it" in answer[1])


def read_here(now, old):
    """What this version reads in the recordings of an earlier one: the sorts of which it says other figures than that one."""
    return [sort for sort, path in old.recordings.items() if now.figures(path) != old.figures(path)]


def read_there(now, old):
    """What an earlier version says of recordings of this one: the sorts that it neither refuses nor reads alike."""
    return [sort for sort, path in now.recordings.items() if not refused(old.figures(path)) and old.figures(path) != now.figures(path)]


def read_together(now, old):
    """A rank of each in one folder. An earlier version may say less, nothing else."""
    folder = old.folder / "together"
    folder.mkdir()
    shutil.copy(old.recordings["whole"], folder / "0.gmt")
    shutil.copy(now.recordings["whole"], folder / "1.gmt")
    alone = {f"{i}.gmt": v.figures(v.recordings["whole"])["devices"][0]["peak_bytes"] for i, v in enumerate((old, now))}
    there = old.ranks(folder)
    return now.ranks(folder) == alone and (isinstance(there, tuple) or there.items() <= alone.items())


def lake_of(collector, lake, path):
    return collector.run("collect", path, "-o", lake).returncode == 0


def ask(version, lake):
    done = version.run("sql", QUERY, lake, "--json")
    if done.returncode:
        return (done.returncode, done.stderr.strip().splitlines()[-1:])
    return [[int(r["peak_bytes"]), int(r["end_bytes"]), int(r["allocs"])] for r in json.loads(done.stdout)["rows"]]


def read_lakes(now, old):
    """A lake in which each collected its own recording: both answer with the same figures, or one sentence."""
    if not (old.has("sql") and DUCKDB.exists()):
        return None
    right = []
    for v in (old, now):
        f = v.figures(v.recordings["whole"])
        right.append([f["devices"][0]["peak_bytes"], f["devices"][0]["end_bytes"], f["allocs"]])
    lake = old.folder / "lake"
    ok = lake_of(old, lake, old.recordings["whole"]) and ask(now, lake) == right[:1]
    ok = ok and lake_of(now, lake, now.recordings["whole"]) and sorted(ask(now, lake)) == sorted(right)
    there = ask(old, lake)
    return ok and (isinstance(there, tuple) and there[0] in (2, 3) or sorted(there) == sorted(right))


def judge(now, old):
    truth = json.loads((old.folder / "truth.json").read_text())
    device = old.figures(old.recordings["whole"])["devices"][0]
    return {"own": (device["peak_bytes"], device["end_bytes"]) == (truth["peak"], truth["left"]), "here": read_here(now, old),
            "there": read_there(now, old),
            "refuses": refused(old.figures(now.recordings["whole"])), "together": read_together(now, old), "lake": read_lakes(now, old)}


def cell(value):
    return "-" if value is None else "same" if value in (True, []) else "**other**" if value is False else "**other: " + ", ".join(value) + "**"


def row(commit, what, old, r):
    sorts = ", ".join(s for s in SORTS if s in old.recordings)
    return f"| {commit} | {what} | {sorts} | {cell(r['here'])} | {cell(r['there']).replace('same', 'refused' if r['refuses'] else 'same')} | {cell(r['together'])} | {cell(r['lake'])} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path)
    parser.add_argument("commits", nargs="*")
    options = parser.parse_args()
    pinned = [line.split(" ", 1) for line in (ROOT / "tests/matrix/readers.txt").read_text().splitlines() if not line.startswith("#")]
    now = Version("now", ROOT)
    HERE.mkdir(parents=True, exist_ok=True)
    (HERE / "snapshot.py").write_text(SNAPSHOT)
    env = {**os.environ, "LD_PRELOAD": str(ROOT / "build/libsimgpu.so"), "LD_LIBRARY_PATH": str(ROOT / "build/simgpu")}
    subprocess.run([PYTHON, HERE / "snapshot.py", HERE / "snapshot.pickle"], env=env, check=True)
    now.record_all()
    assert sorted(now.recordings) == sorted(SORTS), now.recordings
    rows, bad = [], 0
    for commit, what in pinned:
        if options.commits and commit not in options.commits:
            continue
        old = build(commit)
        old.record_all()
        result = judge(now, old)
        bad += not result["own"] or bool(result["here"] or result["there"]) or not result["together"] or result["lake"] is False
        rows.append(row(commit, what, old, result))
        print(rows[-1], "" if result["own"] else "its own figures are not PyTorch's", flush=True)
    if options.table and not options.commits:
        text = options.table.read_text()
        head = text[: text.index("<!-- made by")]
        date = datetime.date.today().isoformat()
        titles = "| Commit | What it changed | Recordings | Read by this version | This version's, read by it | Both as ranks of one run | A lake of both |"
        options.table.write_text(f"{head}<!-- made by make test-matrix, {date} -->\n\n{titles}\n|---|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n")
    print(f"{len(rows) - bad} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
