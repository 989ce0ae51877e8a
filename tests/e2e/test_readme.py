# SPDX-License-Identifier: Apache-2.0
"""README: its blocks run as written, its figures and its sample are those of this version. (`make lint` checks what it names.)"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import shown
from conftest import REAL


ROOT = Path(__file__).resolve().parents[2]
TRAIN = """
import os, torch
torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
model = torch.nn.Linear(64, 64, device="cuda")
model(torch.randn(8, 64, device="cuda")).sum().backward()
"""


def blocks(page):
    return re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


def test_figures_are_those_of_the_table():
    """README's three figures and the chart are made from the table of docs/benchmarks.md."""
    def made(*words):
        return subprocess.run([sys.executable, ROOT / "scripts/benchmark_chart.py", *words], capture_output=True, text=True, check=True).stdout
    said = made("--figures")
    assert said.count("\n") == 3 and f"<!-- figures -->\n{said}<!-- end -->" in (ROOT / "README.md").read_text()
    assert made() == (ROOT / "docs/benchmarks.svg").read_text()


@pytest.mark.skipif(REAL, reason="the sample is of the simulated device")
def test_sample_is_of_this_version(tmp_path):
    """`scripts/refresh-readme.sh sample` makes it; times and the commit differ."""
    (command, lines), = shown.parts(re.search(r"<!-- sample -->\n```\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)[1])
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "PYTORCH_"))}
    recording = tmp_path / "demo.gmt"
    done = subprocess.run([ROOT / "build/gpumemtrace", "run", "-q", "--sim", "h100-80g", "-o", recording, "--", "python", "scripts/demo_qwen.py"], cwd=ROOT,
                          env={**env, "PATH": f"{Path(sys.executable).parent}:{env['PATH']}"}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    words = command.replace("build/demo.gmt", str(recording)).split()
    said = subprocess.run([ROOT / "build/gpumemtrace", *words[1:]], env=env, capture_output=True, text=True, check=True).stdout
    assert not shown.difference(lines, said.replace(str(recording), "build/demo.gmt"), shown.without_time)


@pytest.fixture
def place(tmp_path):
    """A directory where README's commands mean something: build/, train.py and the tool on the PATH."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "build").symlink_to(ROOT / "build")
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "bin" / "gpumemtrace").symlink_to(ROOT / "build/gpumemtrace")
    return tmp_path


def on_simulated_card(command):
    """The same command for a machine without a GPU, as README says to write it."""
    if "--sim" not in command:
        command = command.replace("gpumemtrace run", "gpumemtrace run --sim h100-80g")
    return command.replace("LD_PRELOAD=build/libgpumemtrace.so",
                           "LD_PRELOAD=build/libgpumemtrace.so:build/libsimgpu.so LD_LIBRARY_PATH=build/simgpu")


@pytest.mark.parametrize("block", [b for b in blocks("README.md") if "train.py" in b])
def test_block_runs(place, block):
    env = {k: v for k, v in os.environ.items() if not k.startswith("GPUMEMTRACE_")}
    env["PATH"] = f"{place / 'bin'}:{Path(sys.executable).parent}:{env['PATH']}"
    done = subprocess.run(["bash", "-ec", on_simulated_card(block)], cwd=place, env=env, capture_output=True,
                          text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    recordings = sorted(place.glob("*.gmt"))
    assert len(recordings) == sum(4 if "torchrun" in line else 1 for line in block.splitlines() if "train.py" in line)
    for recording in recordings:
        assert shutil.which("gpumemtrace", path=env["PATH"])
        assert "gpumemtrace" in subprocess.run(["gpumemtrace", "report", recording], env=env, capture_output=True,
                                               text=True, check=True).stdout


def test_check_of_pull_requests(place):
    """The example job: its steps, run as GitHub runs them, on a repository whose second commit doubles the model. The
    check fails, the summary says why, and the page is there."""
    job = yaml.safe_load(re.search(r"^```yaml\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)[1])
    assert job[True] == "pull_request"  # YAML's own reading of "on"
    env = {**os.environ, "PATH": f"{place / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(place / "summary.md"),
           **{f"GIT_{who}_{what}": "x@x.invalid" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}}

    def sh(script):
        return subprocess.run(["bash", "-e", "-c", script], cwd=place, env=env, capture_output=True, text=True, timeout=600)
    commit = "git add train.py && git commit -qm %s"
    assert sh("git init -q && " + commit % "old").returncode == 0
    base = sh("git rev-parse HEAD").stdout.strip()
    (place / "train.py").write_text("import torch\n" + TRAIN.replace("Linear(64, 64", "Linear(64, 4096"))
    assert sh(commit % "new").returncode == 0
    scripts = [step["run"] for step in job["jobs"]["memory"]["steps"] if "gpumemtrace " in step.get("run", "")]
    record, check = (s.replace("${{ github.event.pull_request.base.sha }}", base) for s in scripts)
    assert "${{" not in record + check
    done = sh(record)
    assert done.returncode == 0, done.stderr
    done = sh(check)
    assert done.returncode == 1 and "more than the 2% that is allowed" in done.stderr, done.stderr
    summary = (place / "summary.md").read_text()
    assert "### GPU memory: peak" in summary and f"commit {base[:7]}" in summary
    page = job["jobs"]["memory"]["steps"][-1]["with"]["path"]
    assert (place / page).read_text().startswith("<!doctype html>")
