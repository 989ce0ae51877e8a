# SPDX-License-Identifier: Apache-2.0
"""`gpumemtrace run` of a program that ended out of memory: it says the cause as `report` does, and the command that says more; of
one that went on, ended well, or failed for another reason it says no more than always."""
import json
import os
import shutil
import subprocess
import sys

import json_page
import pytest

from conftest import BUILD, TABLES

LAST = "next: gpumemtrace report "
PROGRAM = """
import ctypes, os, sys
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
def take(mib):
    return cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(mib << 20))
how, rank = sys.argv[1], os.environ.get("RANK", "0")
assert take(100) == 0
if how != "other" and rank in sys.argv[2:3] + ["0"] * (len(sys.argv) == 2):
    assert take(4000) != 0
if how == "survives":
    assert take(100) == 0
if how == "killed":
    os.abort()
sys.exit(0 if how == "well" else 7)
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "p.py").write_text(PROGRAM)

    def start(how, *options, code=7, ranks=None, output="x.gmt"):
        command = [sys.executable, "p.py", how]
        if ranks:
            command = ["sh", "-c", f"for RANK in 0 1 2; do export RANK WORLD_SIZE=3 MASTER_PORT=5; {sys.executable} p.py {how} {ranks}; rc=$?; done; exit $rc"]
        done = subprocess.run([BUILD / "gpumemtrace", "run", *options, "--sim", "mine=2GiB", "-o", output, "--", *command], cwd=tmp_path,
                              env={k: v for k, v in os.environ.items() if not k.startswith("GPUMEMTRACE_")}, capture_output=True, text=True, timeout=600)
        assert done.returncode == code, done.stderr
        return done.stderr
    return start


@pytest.mark.parametrize("how,code", [("fails", 7), ("killed", 134)])
def test_the_cause_behind_the_usual_line(run, tool, tmp_path, how, code):
    said, cause, then = run(how, code=code).splitlines()[-3:]
    assert said.startswith("gpumemtrace: x.gmt, ") and said.endswith(LAST + "x.gmt")
    first = tool.json("report", tmp_path / "x.gmt")["summary"][0]
    assert first["kind"] == "out_of_memory" and cause == "gpumemtrace: " + first["text"]
    assert then == "gpumemtrace: next: gpumemtrace oom x.gmt"
    tool("oom", tmp_path / "x.gmt")


def test_settings_of_engines(run, tmp_path, monkeypatch):
    """Set where the program's Python has the package, but for what the user has set, and with --as-is."""
    (tmp_path / "env/lib/python3.11/site-packages/vllm").mkdir(parents=True)
    (tmp_path / "env/bin").mkdir()
    says = tmp_path / "env/bin/python"
    says.write_text('#!/bin/sh\necho "sampler=$VLLM_USE_FLASHINFER_SAMPLER norm=$FLASHINFER_USE_CUDA_NORM"\n')
    says.chmod(0o755)

    def start(*options, command=str(says)):
        done = subprocess.run([BUILD / "gpumemtrace", "run", *options, "-o", "y.gmt", "--", command], cwd=tmp_path, capture_output=True, text=True, timeout=600)
        return done.stdout.strip(), [line for line in done.stderr.splitlines() if "is set for" in line]

    said, lines = start("--sim", "h100-80g")
    assert said == "sampler=0 norm=" and len(lines) == 1 and "VLLM_USE_FLASHINFER_SAMPLER=0 is set for vllm" in lines[0]
    assert start("--sim", "h100-80g", "--quiet") == ("sampler=0 norm=", [])
    assert start("--sim", "h100-80g", "--as-is") == start() == ("sampler= norm=", [])
    assert start("--sim", "h100-80g", command="/bin/echo") == ("", [])
    monkeypatch.setenv("VLLM_USE_FLASHINFER_SAMPLER", "1")
    assert start("--sim", "h100-80g") == ("sampler=1 norm=", [])
    monkeypatch.delenv("VLLM_USE_FLASHINFER_SAMPLER")
    monkeypatch.setenv("PATH", f"{tmp_path}/env/bin:{os.environ['PATH']}")
    assert start("--sim", "h100-80g", command="python")[0] == "sampler=0 norm="


def test_compiler_of_an_engine(run, tmp_path, monkeypatch):
    """SGLang needs nvcc: that of Python's packages is named, and a linker finds CUDA's libraries with it. Without one a line says which
    packages bring it; one in the PATH is left to find itself."""
    packages = tmp_path / "env/lib/python3.11/site-packages"
    (packages / "sglang").mkdir(parents=True)
    (tmp_path / "env/bin").mkdir()
    says = tmp_path / "env/bin/python"
    says.write_text('#!/bin/sh\necho "$CUDA_HOME|$LIBRARY_PATH"\n')
    says.chmod(0o755)
    for name in ("CUDA_HOME", "LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)

    def start(*options):
        done = subprocess.run([BUILD / "gpumemtrace", "run", "--sim", "h100-80g", *options, "-o", "y.gmt", "--", says], cwd=tmp_path, capture_output=True, text=True, timeout=600)
        return done.stdout.strip(), [line for line in done.stderr.splitlines() if "sglang" in line]

    said, lines = start()
    assert said == "|" and len(lines) == 1 and "cuda-toolkit[nvcc,crt,nvvm,cccl]" in lines[0]
    assert start("--quiet") == ("|", [])
    home = packages / "nvidia/cu13"
    for name in ("bin/nvcc", "lib/libcudart.so.13"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BUILD / "simgpu/libcuda.so.1", home / name)
        (home / name).chmod(0o755)
    said, lines = start()
    assert said.split("|")[0] == str(home) and len(lines) == 1 and f"CUDA_HOME={home} is set for sglang" in lines[0]
    (tmp_path / "empty.c").write_text("")
    link = subprocess.run(["cc", "-shared", "-o", "linked.so", "empty.c", "-lcudart", "-lcuda"], cwd=tmp_path, env={**os.environ, "LIBRARY_PATH": said.split("|")[1]})
    assert link.returncode == 0
    assert start("--as-is") == ("|", [])
    monkeypatch.setenv("CUDA_HOME", "/usr/local/cuda")
    assert start() == ("/usr/local/cuda|", [])
    monkeypatch.delenv("CUDA_HOME")
    monkeypatch.setenv("PATH", f"{home}/bin:{os.environ['PATH']}")
    assert start() == ("|", [])


@pytest.mark.parametrize("how,code", [("survives", 7), ("well", 0), ("other", 7)])
def test_nothing_more_of_other_ends(run, tool, tmp_path, how, code):
    assert run(how, code=code).splitlines()[-1].endswith(LAST + "x.gmt")
    assert (tool.json("report", tmp_path / "x.gmt")["devices"][0]["ooms"] > 0) == (how != "other")


def test_one_line_for_a_folder_of_ranks(run, tool, tmp_path):
    """The rank that ran out of memory is named, whichever has most events."""
    (tmp_path / "ranks").mkdir()
    said, cause, then = run("fails", ranks=1, output="ranks/%r.gmt").splitlines()[-3:]
    assert "3 recordings of 3 ranks in ranks/" in said and cause.startswith("gpumemtrace: rank 1: Out of memory: ")
    assert then == "gpumemtrace: next: gpumemtrace oom ranks/" and "rank 1 was the first" in tool("oom", tmp_path / "ranks")


def test_quiet_and_json(run, tool, tmp_path):
    assert run("fails", "-q") == ""
    document = json.loads(run("fails", "--json"))
    assert document["out_of_memory"] == tool.json("report", tmp_path / "x.gmt")["summary"][0]["text"]
    assert json_page.check(TABLES, "run", document) == []
    assert "out_of_memory" not in json.loads(run("other", "--json"))
