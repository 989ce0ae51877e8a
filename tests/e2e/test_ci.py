# SPDX-License-Identifier: Apache-2.0
"""The script behind action.yml, in a repository of two commits, and the hook for pre-commit."""
import os
import re
import subprocess
import sys

import pytest
from conftest import BUILD, PACKAGE, ROOT, WHEEL

pytestmark = pytest.mark.installed
PROGRAM = """\
import ctypes
cuda, p, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(SIZE << 20)) == 0
"""


def git(folder, *words):
    name = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    return subprocess.run(["git", *name, *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def act(tmp_path):
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q")
    commits = []
    for size in "100", "200":
        (repo / "train.py").write_text(PROGRAM.replace("SIZE", size))
        git(repo, "add", ".")
        git(repo, "commit", "-qm", size)
        commits.append(git(repo, "rev-parse", "HEAD"))
    count = iter(range(9))

    def act(**inputs):
        temp = tmp_path / f"run{next(count)}"
        temp.mkdir()
        env = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}", "RUNNER_TEMP": str(temp), "GITHUB_OUTPUT": str(temp / "output"),
               "GITHUB_STEP_SUMMARY": str(temp / "summary"), "COMMAND": f"{sys.executable} train.py", "CARD": "h100-80g", **inputs}
        done = subprocess.run(["bash", ROOT / "scripts/action.sh"], cwd=repo, env=env, capture_output=True, text=True, timeout=600)
        said = {name: (temp / name).read_text() if (temp / name).exists() else "" for name in ("output", "summary")}
        return done, said, {p.name for p in (temp / "gpumemtrace/kept").iterdir()}

    act.base, act.repo = commits[0], repo
    return act


@pytest.mark.skipif(not WHEEL, reason="needs a wheel: scripts/test-installed.sh")
@pytest.mark.parametrize("of", ["wheel", "source"])
def test_the_action_installs_the_tool(act, tmp_path, of):
    """What later steps find is the tool, in no python of theirs, and with it the action works."""
    env = {**os.environ, "RUNNER_TEMP": str(tmp_path / "temp"), "GITHUB_PATH": str(tmp_path / "path"), "WHEEL": WHEEL if of == "wheel" else ""}
    subprocess.run(["bash", ROOT / "scripts/action-install.sh"], env=env, check=True, timeout=300)
    first = (tmp_path / "path").read_text().strip()
    assert os.listdir(first) == ["gpumemtrace"] and first.startswith(str(tmp_path))
    done, said, _ = act(PATH=f"{first}:{os.environ['PATH']}", BASE=act.base, BOUNDS="--max-peak 150MiB")
    assert done.returncode == 1 and f"peak={200 << 20}" in said["output"], done.stdout + done.stderr


def test_base_and_head_are_compared(act):
    done, said, kept = act(BASE=act.base, BOUNDS="--max-peak 1GiB --max-class unknown=1GiB", FAIL_ABOVE="200MiB")
    assert done.returncode == 0 and "::error" not in done.stdout, done.stdout + done.stderr
    assert said["output"].split() == [f"peak={200 << 20}", f"peak-base={100 << 20}"] or \
        said["output"].split() == [f"peak-base={100 << 20}", f"peak={200 << 20}"]
    assert "100.0 MiB" in said["summary"] and "200.0 MiB" in said["summary"]
    assert kept == {"base.gmt", "head.gmt", "head.html", "diff.html", "check.xml"}
    assert git(act.repo, "worktree", "list").count("\n") == 0 and git(act.repo, "status", "--porcelain") == ""


def test_more_than_is_allowed(act):
    done, _, kept = act(BASE=act.base, FAIL_ABOVE="2%")
    assert done.returncode == 1 and "check.xml" in kept
    assert re.search(r"^::error .*title=gpumemtrace baseline::.*100.0 MiB -> 200.0 MiB", done.stdout, re.M)


def test_no_base(act):
    done, said, kept = act(BASE="none", BOUNDS="--max-peak 150MiB")
    assert done.returncode == 1 and kept == {"head.gmt", "head.html", "check.xml"}
    assert "::error file=train.py,line=5,title=gpumemtrace max-peak::" in done.stdout
    assert "200.0 MiB" in said["summary"] and "Nothing stands out." in said["summary"]
    done, _, _ = act(BASE="0" * 40)
    assert done.returncode == 0 and "::warning title=gpumemtrace::the base 000" in done.stdout
    done, _, kept = act(BASE="none", COMMAND="false")
    assert done.returncode == 2 and "::error title=gpumemtrace::the head has no recording" in done.stdout and not kept


def hook(folder, *words):
    return subprocess.run([sys.executable, "-m", "gpumemtrace.hook", *words], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE)}, timeout=600)


def test_the_hook(act):
    program = ("--", sys.executable, "train.py")
    done = hook(act.repo, "--sim", "a100-40g", "--max-peak", "200MiB", *program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = hook(act.repo, "--max-peak", "199MiB", *program)
    assert done.returncode == 1 and done.stdout.startswith("fail peak 200.0 MiB: 1.0 MiB more than the 199.0 MiB")
    done = hook(act.repo, "--max-peak", "1GiB", "--", sys.executable, "-c", "print('mine'); 1 / 0")
    assert done.returncode == 1 and "mine" in done.stdout and "ZeroDivisionError" in done.stdout
    assert hook(act.repo, "--max-peak", "1GiB").returncode == 2
    assert hook(act.repo, "--max-peek", "1GiB", *program).returncode == 2
