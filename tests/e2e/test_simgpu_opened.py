# SPDX-License-Identifier: Apache-2.0
"""CUDA's libraries that a program opens itself: whatever the way, it gets the simulated one. NVIDIA's own are libraries here that say 999."""
import os
import subprocess
import sys

import pytest
from test_simgpu_core import BUILD, SIM

pytestmark = pytest.mark.skipif(not os.path.exists(SIM), reason="built without CUDA headers")

OPEN = """
import ctypes, sys
total, free = ctypes.c_size_t(), ctypes.c_size_t()
for path in sys.argv[1:]:
    try:
        library = ctypes.CDLL(path)
        print(library.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)))
    except OSError as e:
        print("none")
    except AttributeError:
        print("nothing there")
"""


def library(path, text="int cudaMemGetInfo(void) { return 999; }", *args):
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{path.name}", "-x", "c", "-", "-o", path, *args], input=text, text=True, check=True)
    return str(path)


def opened(*paths, cwd=None, code=OPEN, **env):
    full = dict(os.environ, LD_PRELOAD=SIM, LD_LIBRARY_PATH=os.path.join(BUILD, "simgpu"), SIMGPU_CARD="h100-80g", **env)
    done = subprocess.run([sys.executable, "-c", code, *paths], env=full, capture_output=True, text=True, timeout=600, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def test_by_path_by_name_and_mangled(tmp_path):
    real = [library(tmp_path / "wheel" / name) for name in ("libcudart.so.13", "libcudart.faf08d9a.so.13", "libcudart-d0da41ae.so.13.0.48", "libnccl.so.2")]
    assert opened(*real, "libcudart.so.13", "libcudart.so", "libcublasLt.so.13") == ["0"] * 7
    assert opened("./libcudart.so.13", cwd=tmp_path / "wheel") == ["0"]
    missing = str(tmp_path / "nowhere/libcudart.so.13")
    others = [library(tmp_path / "wheel" / name) for name in ("libnccl-net.so", "libcudnn_ops.so.9", "libcudartx.so", "cudart.so")]
    assert opened(missing, *others) == ["none", "999", "999", "999", "999"]


def test_the_first_runtime_decides_its_version(tmp_path):
    """Another version's runtime is not simulated beside it."""
    text = "int cudaMemGetInfo(void) { return 999; } int cudaRuntimeGetVersion(int *n) { *n = 999000; return 0; }"
    old, new = (library(tmp_path / name, text) for name in ("libcudart.so.12", "libcudart.so.13"))
    code = OPEN.replace("print(library", "n = ctypes.c_int(); library.cudaRuntimeGetVersion(ctypes.byref(n)); print(n.value // 1000, library")
    assert opened(old, new, code=code) == ["12 0", "999 999"]
    assert opened(new, old, code=code) == ["13 0", "999 999"]


def test_beside_a_library(tmp_path):
    """Bare names of what is not simulated are found by the opening library's own search path."""
    library(tmp_path / "plugins/libplugin.so", "int cudaMemGetInfo(void) { return 999; }")
    user = library(tmp_path / "libuser.so", """#include <dlfcn.h>
        int cudaMemGetInfo(void) { void *p = dlopen("libplugin.so", RTLD_NOW), *c = dlopen("libcudart.so.13", RTLD_NOW);
            int (*f)(void) = p ? dlsym(p, "cudaMemGetInfo") : 0, (*g)(int *) = dlsym(c, "cudaGetDeviceCount"); int n = 0;
            return (f ? f() : -1) * 1000 + (g ? g(&n) * 10 + n : -1); }""", "-Wl,-rpath,$ORIGIN/plugins", "-ldl")
    assert opened(user) == ["999001"]


def test_the_recorder_sees_the_calls(tool, tmp_path):
    real = library(tmp_path / "libcudart.so.13", "int cudaMalloc(void) { return 999; }")
    code = "import ctypes, sys; L = ctypes.CDLL(sys.argv[1]); p = ctypes.c_void_p(); print(L.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(3 << 20)))"
    assert tool("run", "-q", "--sim", "h100-80g", "-o", tmp_path / "x.gmt", "--", sys.executable, "-c", code, real) == "0\n"
    assert "mem_alloc thread=1" in (said := tool("dump", tmp_path / "x.gmt")) and "size=3145728" in said and "name=cudaMalloc" in said
