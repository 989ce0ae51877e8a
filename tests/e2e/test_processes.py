# SPDX-License-Identifier: Apache-2.0
"""Ranks, workers, subprocesses: each process that uses a device has its own exact recording, no other
leaves a file, and the program does not notice."""
import json
import os
import resource
import subprocess
import sys

import pytest

from conftest import ENDS_BADLY, REAL, check_marks
from test_hooks import cc


def truths(folder):
    return [json.loads(p.read_text()) for p in sorted(folder.glob("truth.*.json"))]


@pytest.mark.skipif(REAL, reason="needs as many devices as ranks")
@pytest.mark.parametrize("how,ranks", [("fsdp", 2), *(pytest.param(*way, marks=pytest.mark.more) for way in (("ddp", 2), ("ddp", 4), ("fsdp", 4)))])
def test_ranks(programs, tool, how, ranks):
    if ranks == 4 and os.cpu_count() < 2:
        pytest.skip("four ranks on one core")
    done = programs("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", programs.workload("distributed.py"),
                    programs.folder, how, count=ranks, GPUMEMTRACE_OUTPUT="run.%p.gmt")
    assert done.returncode == 0, done.stderr[-3000:]
    said = truths(programs.folder)
    assert sorted(t["rank"] for t in said) == list(range(ranks))
    assert sorted(p.name for p in programs.folder.glob("*.gmt*")) == sorted(f"run.{t['pid']}.gmt" for t in said)
    for truth in said:
        check_marks(tool, programs.folder / f"run.{truth['pid']}.gmt", truth)


@pytest.mark.real
def test_workers_and_subprocesses(programs, tool):
    done = programs("loader.py", programs.folder, "parent", GPUMEMTRACE_OUTPUT="run.%p.gmt")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["device done", "plain 32", "parent done"]
    said = truths(programs.folder)
    assert sorted(p.name for p in programs.folder.glob("*.gmt*")) == sorted(f"run.{t['pid']}.gmt" for t in said)
    assert len(said) == 2
    for truth in said:
        check_marks(tool, programs.folder / f"run.{truth['pid']}.gmt", truth)


@pytest.mark.real
def test_one_name_for_all(programs, tool):
    """A pattern that does not tell processes apart: the first takes the name, the other adds its pid."""
    done = programs("loader.py", programs.folder, "parent", GPUMEMTRACE_OUTPUT="run.gmt")
    assert done.returncode == 0, done.stderr
    said = {t["pid"]: t for t in truths(programs.folder)}
    files = list(programs.folder.glob("*.gmt*"))
    assert len(files) == 2 and programs.folder / "run.gmt" in files
    for file in files:
        pid = int(tool.json("info", file)["pid"])
        assert file.name == "run.gmt" or str(pid) in file.name
        check_marks(tool, file, said[pid])


@pytest.mark.real
def test_workers_that_end_by_exit_of_the_system(programs, tool):
    """os._exit and exec are ends: whole recordings and no live files; workers that use no device leave nothing."""
    done = programs("workers.py", GPUMEMTRACE_OUTPUT="run.%p.gmt")
    assert done.returncode == 5, done.stderr
    used = done.stdout.split()
    assert len(used) == 5
    assert sorted(p.name for p in programs.folder.glob("*.gmt*")) == sorted(f"run.{pid}.gmt" for pid in used)
    for pid in used:
        assert not tool.json("report", programs.folder / f"run.{pid}.gmt")["truncated"]


SAME = """
import sys, torch
x = torch.ones(5, device="cuda", requires_grad=True)
(x * x).sum().backward()
print("out", tuple(x.grad.shape), x.grad.device)
print("err", file=sys.stderr)
sys.exit(7)
"""


def outcome(done):
    return done.returncode, done.stdout, done.stderr


@pytest.mark.plain
@pytest.mark.real
def test_the_program_does_not_notice(programs, tool):
    plain = outcome(programs("-c", SAME, traced=False))
    assert plain[0] == 7
    assert outcome(programs("-c", SAME)) == plain
    assert len(list(programs.folder.glob("gpumemtrace.*.gmt"))) == 1


@pytest.mark.plain
@pytest.mark.real
@pytest.mark.parametrize("place", ["missing/run.gmt", "/proc/run.gmt"])
def test_nowhere_to_write(programs, tool, place):
    """One warning, and all else as without us."""
    plain = outcome(programs("-c", SAME, traced=False))
    traced = outcome(programs("-c", SAME, GPUMEMTRACE_OUTPUT=place))
    assert traced[:2] == plain[:2]
    ours = [line for line in traced[2].splitlines() if line.startswith("gpumemtrace: ")]
    assert len(ours) == 1 and place in ours[0]
    assert [line for line in traced[2].splitlines() if line not in ours] == plain[2].splitlines()


@pytest.mark.plain
@pytest.mark.real
def test_full_disk(programs, tool):
    """The place fills up in the middle: the training goes on; what was written before can be read."""
    env = programs.environment(GPUMEMTRACE_OUTPUT="run.gmt")
    done = subprocess.run([sys.executable, programs.workload("train.py"), "truth.json", "mlp", "mlp"], env=env, cwd=programs.folder,
                          capture_output=True, text=True, timeout=600,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10)))
    assert done.returncode == 0, done.stderr
    assert (programs.folder / "truth.json").exists()
    assert len([line for line in done.stderr.splitlines() if line.startswith("gpumemtrace: ")]) <= 1


# Autograd's thread goes on only when the interpreter ends.
LATE = """
    #include <dlfcn.h>
    #include <pthread.h>
    #include <string.h>
    #include <unistd.h>
    int pthread_cond_broadcast(pthread_cond_t *c) {
        int (*real)(pthread_cond_t *) = dlsym(RTLD_NEXT, "pthread_cond_broadcast");
        int (*ends)(void) = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
        char name[16] = "";
        int rc = real(c);
        if (!ends) ends = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
        pthread_getname_np(pthread_self(), name, sizeof(name));
        for (int i = 0; i < 20000 && ends && !strncmp(name, "pt_autograd", 11) && !ends(); i++) usleep(500);
        return rc;
    }"""
HOOKED = """
import torch
x = torch.ones(5, device="cuda", requires_grad=True)
x.register_hook(lambda g: torch.autograd.Variable._execution_engine.queue_callback(lambda: None))
(x * x).sum().backward()
"""


@pytest.mark.plain
@pytest.mark.skipif(REAL, reason="the same there")
def test_autograds_thread_is_late_at_the_end(programs, tool):
    """CPython before 3.14 ends that thread in a function that may not throw. The program is aborted, alone as with us, unless it
    has ended before; the recording is whole either way."""
    late = cc(programs.folder, "late.so", LATE)
    ends = []
    for traced in (False, True):
        env = programs.environment(traced, GPUMEMTRACE_OUTPUT="run.gmt")
        env["LD_PRELOAD"] = late + ":" + env["LD_PRELOAD"]
        ends.append(outcome(subprocess.run([sys.executable, "-c", HOOKED], env=env, cwd=programs.folder, capture_output=True, text=True,
                                           timeout=600)))
    assert set(ends) <= {(0, "", ""), (-6, "", ENDS_BADLY)}
    assert tool.json("report", programs.folder / "run.gmt")["allocs"] > 3


@pytest.mark.real
def test_no_device_no_file(programs, tool):
    done = programs("-c", "import torch; print(torch.ones(3).sum())", GPUMEMTRACE_OUTPUT="run.gmt")
    assert done.returncode == 0 and done.stderr == ""
    assert list(programs.folder.glob("*.gmt*")) == []
