# SPDX-License-Identifier: Apache-2.0
"""Recorded Python stacks against sys._getframe, in every CPython of this machine, with the GIL held and
released, in threads, generators, coroutines, callbacks from C, code that is compiled and dropped."""
import glob
import json
import os
import shutil
import subprocess

import pytest
import toy

WORKLOAD = os.path.join(toy.ROOT, "tests/programs/python_frames.py")
VERSIONS = [(3, minor) for minor in range(9, 15)]
ASK = """import sys, sysconfig
print(*sys.version_info[:2], sys.implementation.name, sys._base_executable, "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "-")"""


def interpreters():
    """One of each minor version, and of each free-threaded one: named in GPUMEMTRACE_TEST_PYTHONS, on PATH, pyenv's and uv's."""
    found = {}
    candidates = os.environ.get("GPUMEMTRACE_TEST_PYTHONS", "").split(":")
    candidates += [shutil.which("python3"), os.path.join(toy.ROOT, ".venv/bin/python")]
    candidates += [shutil.which("python3.%d%s" % (minor, t)) for _, minor in VERSIONS for t in ("", "t")]
    for place in ("~/.pyenv/versions/3.*/bin/python", "~/.local/share/uv/python/cpython-3.*/bin/python3"):
        candidates += sorted(glob.glob(os.path.expanduser(place)))
    for path in filter(None, candidates):
        try:
            words = subprocess.run([path, "-c", ASK], capture_output=True, text=True, timeout=600).stdout.split()
        except OSError:
            continue
        if len(words) == 5 and words[2] == "cpython" and (int(words[0]), int(words[1])) in VERSIONS:
            found.setdefault("%s.%s%s" % (words[0], words[1], words[4].strip("-")), path)
    return found


PYTHONS = interpreters()


@pytest.fixture(scope="session")
def cudart(tmp_path_factory):
    return toy.build_cudart(tmp_path_factory.mktemp("cudart"))


def record(python, cudart, tmp_path, *args, **env):
    out, truth = tmp_path / "run.gmt", tmp_path / "truth.json"
    env = dict(os.environ, LD_PRELOAD="%s:%s" % (toy.SHIM, cudart), GPUMEMTRACE_OUTPUT=str(out), **env)
    env.pop("PYTHONHOME", None)
    subprocess.run([python, WORKLOAD, str(truth), *args], env=env, check=True, timeout=600)
    return out, {int(k): v for k, v in json.loads(truth.read_text()).items()}


def events(path):
    return {e["size"]: e for e in toy.dump(path) if e["kind"] == "mem_alloc"}


def of_python(frames):
    return [[f["file"], f["function"], f["line"]] for f in frames if f["kind"] == "python"]


def python_frames(path, stack):
    return of_python(json.loads(toy.tool("stack", "--json", path, stack))["frames"])


def test_there_is_something_to_test():
    assert PYTHONS


def assert_equal(path, seen, truth):
    if len(truth) > 100:
        all_frames = {s["stack"]: of_python(s["frames"]) for s in map(json.loads, toy.tool("stack", "--all", "--json", path).splitlines())}
    else:
        all_frames = {e["stack"]: python_frames(path, e["stack"]) for size, e in seen.items() if size in truth}
    wrong = [(size, all_frames[seen[size]["stack"]], stack) for size, stack in truth.items() if all_frames[seen[size]["stack"]] != stack]
    assert not wrong, "%d of %d differ, the first: %r" % (len(wrong), len(truth), wrong[0])


@pytest.mark.parametrize("version", PYTHONS)
def test_frames_equal_the_interpreters(version, cudart, tmp_path):
    path, truth = record(PYTHONS[version], cudart, tmp_path, GPUMEMTRACE_STACKS="python")
    seen = events(path)
    assert len(truth) > 900 and set(truth) == set(seen)
    assert_equal(path, seen, truth)


@pytest.mark.parametrize("version", PYTHONS)
def test_beside_native_frames(version, cudart, tmp_path):
    """A sample, since looking up native symbols takes its time; and they are one stack with the native frames."""
    path, truth = record(PYTHONS[version], cudart, tmp_path)
    seen = events(path)
    assert set(truth) == set(seen)
    assert_equal(path, seen, {size: truth[size] for size in list(truth)[::50]})
    some = json.loads(toy.tool("stack", "--json", path, seen[min(truth)]["stack"]))["frames"]
    assert any(f["kind"] == "native" for f in some)


@pytest.mark.parametrize("version", PYTHONS)
def test_deeper_than_is_kept(version, cudart, tmp_path):
    path, truth = record(PYTHONS[version], cudart, tmp_path, "deep", GPUMEMTRACE_STACKS="python")
    seen = events(path)
    deepest = max(truth, key=lambda size: len(truth[size]))
    frames = python_frames(path, seen[deepest]["stack"])
    assert len(truth[deepest]) > 1500 and len(frames) == 1024
    assert frames == truth[deepest][:1024]
