# SPDX-License-Identifier: Apache-2.0
"""Programs without PyTorch, on the simulated device: their report is by library and line, with no table of classes and
no word of PyTorch; a pool that takes most of the device is named, with what switches it off."""

import pytest

from test_hooks import cc

BINDINGS = """
from cuda.bindings import driver
def ok(result):
    assert int(result[0]) == 0, result[0]
    return result[1] if len(result) == 2 else None
ok(driver.cuInit(0))
context = ok(driver.cuDevicePrimaryCtxRetain(ok(driver.cuDeviceGet(0))))
ok(driver.cuCtxSetCurrent(context))
def weights():
    return ok(driver.cuMemAlloc(3 << 30))
def batch():
    return ok(driver.cuMemAlloc(256 << 20))
kept = weights()
for made in [batch() for _ in range(3)]:
    ok(driver.cuMemFree(made))
"""

# As XLA takes its pool: one call, three quarters of what is free.
PLUGIN = """
    int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
    int cuMemAlloc_v2(unsigned long *, unsigned long), cuMemGetInfo_v2(unsigned long *, unsigned long *);
    int start(void) {
        unsigned long p, free_bytes, all; void *c; int d;
        if (cuInit(0) || cuDeviceGet(&d, 0) || cuDevicePrimaryCtxRetain(&c, d) || cuCtxSetCurrent(c)) return 1;
        return cuMemGetInfo_v2(&free_bytes, &all) || cuMemAlloc_v2(&p, free_bytes / 4 * 3);
    }"""


def report(tool, recording):
    text = tool("report", recording)
    assert "PyTorch" not in text and "torch" not in text and "  class " not in text, text
    return text


def test_cuda_python(programs, tool):
    pytest.importorskip("cuda.bindings")
    script = programs.folder / "bindings.py"
    script.write_text(BINDINGS)
    recording = programs.traced(script)
    text = report(tool, recording)
    said = tool.json("report", recording)["devices"][0]
    assert said["peak_bytes"] == (3 << 30) + 3 * (256 << 20) and said["end_bytes"] == 3 << 30
    assert "weights bindings.py:10" in text and "batch bindings.py:12" in text
    assert "one piece" not in text


@pytest.mark.parametrize("name,owner,setting", [
    ("xla_cuda_plugin.so", "JAX's own allocator", "XLA_PYTHON_CLIENT_PREALLOCATE=false"),
    ("libtensorflow_framework.so.2", "TensorFlow's own allocator", "TF_FORCE_GPU_ALLOW_GROWTH=true"), ("libmine.so", None, None)])
def test_a_pool_of_most_of_the_device(programs, tool, name, owner, setting):
    cc(programs.folder, name, PLUGIN)
    recording = programs.traced("-c", f"import ctypes; assert not ctypes.CDLL('./{name}').start()")
    text = report(tool, recording)
    assert "one block, 74 % of the device" in text or "one block, 75 % of the device" in text
    assert (owner is None and "own allocator" not in text) or (owner in text and setting in text)


def test_the_line_that_asked_the_library(programs, tool):
    """Packages of arrays only carry a request on, however they are laid out: the program's own line is named."""
    names = ["numba", "cupy", "jax", "tensorflow", "cuda"]
    for name in names:
        inner = programs.folder / "site-packages" / name / "inner"
        inner.mkdir(parents=True)
        (inner / "driver.py").write_text("import ctypes\ndef take(n):\n    p = ctypes.c_void_p()\n"
                                         "    ctypes.CDLL(None).cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n))\n")
    script = programs.folder / "mine.py"
    script.write_text("import sys, runpy\nsys.path.insert(0, 'site-packages')\n" +
                      "".join(f"take_{n} = runpy.run_path('site-packages/{n}/inner/driver.py')['take']\ndef of_{n}():\n    take_{n}({8 + i} << 20)\n"
                              for i, n in enumerate(names)) + "".join(f"of_{n}()\n" for n in names))
    text = report(tool, programs.traced(script))
    assert [n for n in names if f"of_{n} mine.py:{5 + 3 * names.index(n)}" not in text] == [], text
