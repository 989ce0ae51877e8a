# SPDX-License-Identifier: Apache-2.0
"""What the documents promise exists: commands run as written, options, make targets, files, links."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml


ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", "tests/README.md", "docs/gpu-results.md", "docs/benchmarks.md", "docs/python.md", "docs/ci.md", "docs/index.md",
         *(f"docs/questions/{p.name}" for p in sorted((ROOT / "docs/questions").glob("*.md")))]
TRAIN = """
import os, torch
torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
model = torch.nn.Linear(64, 64, device="cuda")
model(torch.randn(8, 64, device="cuda")).sum().backward()
"""


def blocks(page):
    return re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


def commands(page):
    """Lines of the sh blocks, and the code in tables and sentences that names a command."""
    lines = [re.sub(r"\s+#.*", "", line) for block in blocks(page) for line in block.splitlines()]
    inline = re.findall(r"`((?:gpumemtrace|make|scripts/)[^`]*)`", (ROOT / page).read_text())
    return [c.replace("\\|", "|") for c in lines + inline if c.strip()]


def all_commands():
    return [(page, command) for page in PAGES for command in commands(page)]


def tool_help(*words):
    done = subprocess.run([ROOT / "build/gpumemtrace", *words, "--help"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def check_tool(words):
    name = next((w for w in words[1:] if not w.startswith("-")), None)
    if name in (None, "help") or not re.fullmatch(r"[a-z]+", name):
        return
    text = tool_help(name)
    for option in re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", " ".join(words[2:]).split(" -- ")[0]):
        assert option in text, f"gpumemtrace {name} has no {option}"


def check_make(words):
    targets = re.findall(r"^([a-z-]+(?: [a-z-]+)*):", (ROOT / "Makefile").read_text(), re.M)
    known = {t for line in targets for t in line.split()}
    for word in words[1:]:
        if "=" not in word and not word.startswith(("-", "build/", "run-")):
            assert word in known, f"make has no target {word}"


@pytest.mark.parametrize("page, command", all_commands())
def test_command_exists(page, command):
    words = command.split()
    while words and re.match(r"[A-Z_]+=", words[0]):
        words.pop(0)
    if words[0] == "gpumemtrace":
        check_tool(words)
    elif words[0] == "make":
        check_make(words)
    elif words[0].startswith("scripts/") and "*" not in words[0]:
        mode = os.X_OK if words[0].endswith(".sh") else os.R_OK
        assert os.access(ROOT / words[0], mode), words[0]


@pytest.mark.parametrize("page", PAGES)
def test_links(page):
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()):
        if "://" not in target:
            assert ((ROOT / page).parent / target).exists(), target


def test_figures_are_those_of_the_table():
    """README's three figures and the chart are made from the table of docs/benchmarks.md."""
    def made(*words):
        return subprocess.run([sys.executable, ROOT / "scripts/benchmark_chart.py", *words], capture_output=True, text=True, check=True).stdout
    said = made("--figures")
    assert said.count("\n") == 3 and f"<!-- figures -->\n{said}<!-- end -->" in (ROOT / "README.md").read_text()
    assert made() == (ROOT / "docs/benchmarks.svg").read_text()


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
                          text=True, timeout=240)
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
        return subprocess.run(["bash", "-e", "-c", script], cwd=place, env=env, capture_output=True, text=True, timeout=240)
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
