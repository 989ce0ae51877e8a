# SPDX-License-Identifier: Apache-2.0
"""In company: other preloaded libraries in either order, debuggers and profilers. The program does what it does with
the companion alone, and the recording is what the program logged. Companions that are not installed are skipped."""
import os
import shutil
import subprocess
import sys

import pytest
import toy
from test_programs import PROGRAM, check, cudart, ends_well, logged, program, recorded  # noqa: F401 (fixtures)

ALLOCATORS = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"]

# As a preload that notes what is looked up: exports dlsym and hands on to the next one.
OBSERVER = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    void *dlsym(void *h, const char *name) {
        static void *(*real)(void *, const char *);
        if (!real) real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
        if (!real) real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
        return real(h, name);
    }"""

PYTHON = """
import ctypes, os, time
cuda = ctypes.CDLL(None)
log = open(os.environ["LOG"], "w", buffering=1)
def allocate(n):
    p = ctypes.c_void_p()
    cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n))
    print(os.getpid(), "alloc", hex(p.value), n, file=log)
    return p
def work(rounds):
    for i in range(rounds):
        p = allocate(512 + i)
        if i % 3 == 0:
            print(os.getpid(), "free", hex(p.value), file=log)
            cuda.cudaFree(p)
        time.sleep(0.001)
work(int(os.environ.get("ROUNDS", 100)))
log.close()
print("done")
"""


def run(folder, cudart, command, preload, **env):
    full = dict(os.environ, LOG=str(folder / "log"), GPUMEMTRACE_OUTPUT=str(folder / "run.%p.gmt"), LD_PRELOAD=":".join(preload), **env)
    return subprocess.run([str(c) for c in command], env=full, cwd=folder, capture_output=True, text=True, timeout=600)


def library(name):
    found = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
    path = next((line.split()[-1] for line in found.splitlines() if line.split()[:1] == [name]), None)
    return path or pytest.skip(f"no {name} here")


def tool(name):
    return shutil.which(name) or pytest.skip(f"no {name} here")


def finishes(done, folder):
    assert (done.returncode, done.stdout[-5:]) == (0, "done\n"), done.stderr
    assert "gpumemtrace:" not in done.stderr, done.stderr
    for [path] in check(folder, in_order=False).values():
        ends_well(path)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("mode", ["threads", "fork", "_exit"])
@pytest.mark.parametrize("name", ALLOCATORS)
def test_an_allocator(cudart, tmp_path, name, mode, first):
    both = [library(name), toy.SHIM] if first else [toy.SHIM, library(name)]
    done = run(tmp_path, cudart, [PROGRAM, mode], [*both, cudart])
    if mode == "_exit":
        assert (done.returncode, done.stderr) == (7, "")
        check(tmp_path, in_order=False)
    else:
        finishes(done, tmp_path)


@pytest.mark.parametrize("first", [True, False])
def test_another_that_exports_dlsym(cudart, tmp_path, first):
    (tmp_path / "observer.c").write_text(OBSERVER)
    other = str(tmp_path / "observer.so")
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-o", other, tmp_path / "observer.c", "-ldl"], check=True)
    done = run(tmp_path, cudart, [PROGRAM, "threads"], [*([other, toy.SHIM] if first else [toy.SHIM, other]), cudart])
    finishes(done, tmp_path)


def test_an_audit_library(cudart, tmp_path):
    """The loader has less thread-local storage for preloaded libraries then."""
    (tmp_path / "audit.c").write_text("""#include <link.h>
        #include <stdint.h>
        unsigned la_version(unsigned v) { return v; }
        unsigned la_objopen(struct link_map *m, Lmid_t l, uintptr_t *c) { return LA_FLG_BINDTO | LA_FLG_BINDFROM; }""")
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", tmp_path / "audit.so", tmp_path / "audit.c"], check=True)
    done = run(tmp_path, cudart, [PROGRAM, "threads"], [toy.SHIM, cudart], LD_AUDIT=str(tmp_path / "audit.so"))
    finishes(done, tmp_path)


def test_gdb(cudart, tmp_path):
    """Stops in the real call, walks the stack through our hook, goes on."""
    preload = f"set environment LD_PRELOAD {toy.SHIM}:{cudart}"
    done = run(tmp_path, cudart, [tool("gdb"), "-nx", "-batch", "-ex", "set breakpoint pending on", "-ex", "set confirm off", "-ex", preload,
                                  "-ex", "break release", "-ex", "run", "-ex", "bt", "-ex", "delete", "-ex", "continue", "--args", PROGRAM, "plain"], [])
    assert "release" in done.stdout and "main" in done.stdout and "exited normally" in done.stdout, done.stdout + done.stderr
    [[path]] = check(tmp_path).values()
    ends_well(path)


def test_py_spy(cudart, tmp_path):
    py_spy = tool("py-spy")
    (tmp_path / "p.py").write_text(PYTHON)
    done = run(tmp_path, cudart, [py_spy, "record", "--native", "-d", "2", "-o", tmp_path / "out.svg", "--", sys.executable, "p.py"],
               [toy.SHIM, cudart], ROUNDS="400")
    if "ermission" in done.stderr:
        pytest.skip("py-spy may not look at other processes here")
    [truth] = logged(tmp_path).values()  # py-spy may kill the program when its time is over
    assert (tmp_path / "out.svg").exists() and len(truth) > 50
    assert set(truth) <= {(what, address, *size) for what, address, *size in recorded(tmp_path.glob("run.*.gmt"))}


def test_memray(cudart, tmp_path):
    memray = tool("memray")
    python = os.path.join(os.path.dirname(os.path.realpath(memray)), "python")
    (tmp_path / "p.py").write_text(PYTHON)
    done = run(tmp_path, cudart, [python if os.path.exists(python) else sys.executable, "-m", "memray", "run", "--native", "-o", tmp_path / "m.bin", "p.py"],
               [toy.SHIM, cudart])
    assert done.returncode == 0 and "done" in done.stdout, done.stderr
    [truth] = logged(tmp_path).values()
    assert sorted(recorded(tmp_path.glob("run.*.gmt"))) == sorted(truth)
    assert (tmp_path / "m.bin").stat().st_size > 1000
