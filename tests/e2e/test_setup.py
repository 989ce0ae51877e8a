# SPDX-License-Identifier: Apache-2.0
"""The set-up script: made once, never twice at a time, and made anew after an interruption. Its smallest
part (the headers) is run in a tree of its own, with a stand-in for pip that leaves a trace of each call."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAND_IN = """#!/bin/sh
echo call >>"$CALLS"
[ ! -e "$CALLS.fail" ] || exit 1
sleep 0.3
"""


@pytest.fixture
def tree(tmp_path):
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "tests/requirements", tree / "tests/requirements")
    (tree / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/setup.sh", tree / "scripts")
    (tree / ".venv/bin").mkdir(parents=True)
    (tree / ".venv/bin/python").write_text(STAND_IN)
    (tree / ".venv/bin/python").chmod(0o755)
    return tree


def start(tree, *parts):
    env = os.environ | {"GPUMEMTRACE_CACHE": str(tree.parent / "cache"), "CALLS": str(tree.parent / "calls")}
    return subprocess.Popen([tree / "scripts/setup.sh", *parts], env=env, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def calls(tree):
    log = tree.parent / "calls"
    return len(log.read_text().splitlines()) if log.exists() else 0


def finish(process):
    said = "".join(process.communicate(timeout=600))
    return process.returncode, said


def test_once_for_all_clones(tree):
    assert finish(start(tree, "headers"))[0] == 0
    assert calls(tree) == 2
    link = (tree / ".cuda-headers").readlink()
    assert link.parent == tree.parent / "cache"
    (tree / ".cuda-headers").unlink()
    assert finish(start(tree, "headers"))[0] == 0
    assert calls(tree) == 2 and (tree / ".cuda-headers").readlink() == link


def test_two_at_a_time(tree):
    both = [start(tree, "headers") for _ in range(2)]
    assert [finish(p)[0] for p in both] == [0, 0]
    assert calls(tree) == 2


def test_interrupted(tree):
    (tree.parent / "calls.fail").touch()
    assert finish(start(tree, "headers"))[0] != 0
    assert not (tree / ".cuda-headers").is_symlink()
    (tree.parent / "calls.fail").unlink()
    assert finish(start(tree, "headers"))[0] == 0
    assert calls(tree) == 3


def test_something_else_in_the_way(tree):
    (tree / ".cuda-headers").mkdir()
    code, said = finish(start(tree, "headers"))
    assert code == 2 and "move it away" in said


def test_unknown_part(tree):
    code, said = finish(start(tree, "everything"))
    assert code == 2 and "unknown part everything" in said


@pytest.mark.parametrize("part, whole", [("cuda", "cu13"), ("trainers", "frameworks")])
def test_a_part_has_the_versions_of_the_whole(part, whole):
    pins = {name: (ROOT / f"tests/requirements/{name}.txt").read_text().splitlines() for name in (part, whole)}
    alone = [line for line in pins[part] if not line.startswith("#")]
    assert len(alone) == 4 and set(alone) <= set(pins[whole])


def test_make_without_the_headers_stops_with_a_sentence(tmp_path):
    """The check alone, in a folder of its own; nothing is said where the device is left out on purpose."""
    empty = [f"B={tmp_path}", "WHEELS=", "CUDA_INC=", "CUDA_INCS="]
    done = subprocess.run(["make", "-C", ROOT, *empty, f"{tmp_path}/cuda-ok"], capture_output=True, text=True)
    assert done.returncode == 2 and "`scripts/setup.sh cuda` fetches them" in done.stdout and "SIMGPU=no" in done.stdout
    old = tmp_path / "cuda.h"
    old.write_text("#define CUDA_VERSION 12040\n")
    for name in "cuda_runtime_api", "cupti", "nvml":
        (tmp_path / f"{name}.h").touch()
    place = [f"B={tmp_path}", f"CUDA_INC={tmp_path}", f"CUDA_INCS=-isystem {tmp_path}", f"{tmp_path}/cuda-ok"]
    assert subprocess.run(["make", "-C", ROOT, *place], capture_output=True).returncode == 2
    old.write_text("#define CUDA_VERSION 13000\n")
    assert subprocess.run(["make", "-C", ROOT, *place], capture_output=True).returncode == 0
    planned = {words: subprocess.run(["make", "-C", ROOT, "-n", f"B={tmp_path}/new", *words, "all"], capture_output=True, text=True).stdout
               for words in ((), ("SIMGPU=no",))}
    assert "libsimgpu.so" in planned[()] and "cuda-ok" in planned[()]
    assert "libsimgpu.so" not in planned["SIMGPU=no",] and "cuda-ok" not in planned["SIMGPU=no",]
