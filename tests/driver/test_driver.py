# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own libraries as the judge of the hooks: driver libraries of several versions, which answer questions about
their functions without a card, and what is built on them. `make test-driver`; skipped where they cannot be had."""
import glob
import os
import re
import subprocess
import sys

import lookups
import pytest
from lookup_table import LookupTable

HERE = os.path.dirname(os.path.abspath(__file__))
SITE = "lib/python3*/site-packages/nvidia"

# (what start.py starts, the name in the table, where it lies)
LIBRARIES = [
    ("cudart", "cudart 11.8", ".cuda-headers/headers-cu11/nvidia/cuda_runtime/lib/libcudart.so.11.0"),
    ("cudart", "cudart 12.4", ".cuda-headers/headers-cu12/nvidia/cuda_runtime/lib/libcudart.so.12"),
    ("cudart", "cudart 13.0", f".venv/{SITE}/cu13/lib/libcudart.so.13"),
    ("cublas", "cuBLAS 13", f".venv/{SITE}/cu13/lib/libcublas.so.13"),
    ("cudnn", "cuDNN 9", f".venv/{SITE}/cudnn/lib/libcudnn.so.9"),
    ("nccl", "NCCL 2", f".venv/{SITE}/nccl/lib/libnccl.so.2"),
    ("cusparse", "cuSPARSE 12", f".venv/{SITE}/cu13/lib/libcusparse.so.12"),
    ("cusolver", "cuSOLVER 12", f".venv/{SITE}/cu13/lib/libcusolver.so.12"),
    ("curand", "cuRAND 10", f".venv/{SITE}/cu13/lib/libcurand.so.10"),
    ("cuda-python", "cuda-python 12.9", ".driver-packages/driver-cu12"),
    ("cuda-python", "cuda-python 13", ".venv/lib/python3*/site-packages"),
    ("cupy", "CuPy 14 for CUDA 12", ".driver-packages/driver-cu12"),
    ("cupy", "CuPy 14 for CUDA 13", ".driver-packages/driver-cu13"),
]


def driver_libraries():
    done = subprocess.run([os.path.join(lookups.ROOT, "scripts/driver-libraries.sh")], capture_output=True, text=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines()), done.stderr.strip()


DRIVERS, WHY_NOT = driver_libraries()
each_driver = pytest.mark.parametrize("driver", DRIVERS or [pytest.param("none", marks=pytest.mark.skip(reason=WHY_NOT))])


def path_of(pattern):
    found = glob.glob(os.path.join(lookups.ROOT, pattern))
    if not found:
        pytest.skip("no " + pattern)
    return found[0]


def cc(folder, name, source, *flags):
    out = os.path.join(str(folder), name)
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-w", "-o", out, source, *flags, "-ldl"], check=True)
    return out


@pytest.fixture(scope="session")
def tools(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tools")
    return {"lookups": lookups.build(folder), "calls": cc(folder, "calls", os.path.join(HERE, "calls.c")),
            "observer": cc(folder, "observer.so", os.path.join(lookups.ROOT, "tests/e2e/observer.c"), "-shared", "-fPIC")}


def run(driver, folder, *command, preload=(), more=(), **env):
    full = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_", "PYTHON"))}
    full.update(LD_PRELOAD=":".join(preload), LD_LIBRARY_PATH=":".join([DRIVERS[driver], *more]),
                GPUMEMTRACE_OUTPUT=os.path.join(str(folder), "run.%p.gmt"), GPUMEMTRACE_QUIET="1", **env)
    return subprocess.run([str(c) for c in command], env=full, cwd=folder, capture_output=True, text=True, timeout=120)


def both(driver, folder, *command, front=(), **how):
    """Alone, and with the library preloaded: the same codes and output."""
    return [run(driver, folder, *command, preload=[*front, *ours], **how) for ours in ([], [lookups.SHIM])]


@each_driver
def test_every_lookup(tools, driver, tmp_path):
    plain, ours = (lookups.ask(tools["lookups"], DRIVERS[driver], tmp_path, "cuLaunchKernel", "cuMemcpyDtoH", traced=t)
                   for t in (False, True))
    asked, mine, wrong = lookups.compare(plain, ours)
    assert not wrong, wrong[:5]
    assert asked > 4000 and mine > asked / 2


@each_driver
@pytest.mark.parametrize("runtime", [name for _, name, _ in LIBRARIES if name.startswith("cudart")])
def test_every_call_gives_the_same_code(tools, driver, runtime, tmp_path):
    library = path_of(next(path for _, name, path in LIBRARIES if name == runtime))
    alone, traced = both(driver, tmp_path, tools["calls"], library)
    codes = dict(line.split() for line in alone.stdout.splitlines())
    assert alone.returncode == 0 and len(codes) > 80 and {"3", "100"} & set(codes.values())
    assert "0" not in codes.values()
    assert (traced.returncode, traced.stdout, traced.stderr) == (0, alone.stdout, alone.stderr)


@each_driver
def test_cupti(tools, driver, tmp_path):
    """A program's own subscription has the same fate; ours says what CUPTI said."""
    cupti = path_of(f".venv/{SITE}/cu13/lib/libcupti.so.13")
    alone, traced = both(driver, tmp_path, sys.executable, os.path.join(HERE, "start.py"), "cupti", cupti)
    assert alone.returncode == 0 and (traced.stdout, traced.stderr) == (alone.stdout, alone.stderr)
    for path in tmp_path.glob("*.gmt*"):
        path.unlink()
    run(driver, tmp_path, tools["calls"], preload=[lookups.SHIM], more=[os.path.dirname(cupti)], GPUMEMTRACE_CUPTI="1")
    [recording] = tmp_path.glob("*.gmt")
    tool = os.path.join(lookups.ROOT, "build/gpumemtrace")
    said = subprocess.run([tool, "info", recording], capture_output=True, text=True, check=True).stdout
    code = alone.stdout.strip()
    assert re.search(r"^cupti +(%s)" % ("subscribed" if code == "0" else r"cuptiSubscribe: %s CUPTI_ERROR_\w+" % code), said, re.M)


@pytest.fixture(scope="module")
def table():
    lookup_table = LookupTable(list(DRIVERS))
    yield lookup_table
    lookup_table.write(os.path.join(lookups.ROOT, "docs/driver-lookups.md"), [name for _, name, _ in LIBRARIES])


@each_driver
@pytest.mark.parametrize("what,name,path", LIBRARIES, ids=[name for _, name, _ in LIBRARIES])
def test_what_a_library_is_given(tools, table, driver, what, name, path, tmp_path):
    """Each function that it looks up is our hook where the driver's own is one that we hook, and the driver's elsewhere."""
    more = [os.path.dirname(p) for _, _, pattern in LIBRARIES for p in glob.glob(os.path.join(lookups.ROOT, pattern))
            if "cu13/lib" in p or "cudnn" in p]
    alone, traced = both(driver, tmp_path, sys.executable, os.path.join(HERE, "start.py"), what, path_of(path), front=[tools["observer"]],
                         more=sorted(set(more)))
    assert (traced.returncode, traced.stdout) == (alone.returncode, alone.stdout)
    if alone.returncode:
        return table.add_refusal(name, driver)
    plain, ours = (re.findall(r"^(ask|find) '(.*?)' (.*?) ?(\S+) (\S+)$", done.stderr, re.M) for done in (alone, traced))
    assert len(plain) > 300 and [p[:3] for p in plain] == [o[:3] for o in ours]
    hooked, hooked_runtime = lookups.hooked_symbols(), lookups.hooked_symbols("RUNTIME")
    for before, after in zip(plain, ours):
        mine = before[4] in (hooked if before[3].startswith("libcuda.so") else hooked_runtime if "cudart" in before[3] else ())
        assert after[3:] == (("libgpumemtrace.so", before[4]) if mine else before[3:]), (before, after)
    table.add(name, driver, [p for p in plain if p[3].startswith("libcuda.so")], hooked)


@each_driver
def test_every_function_looked_up_is_accounted_for(table, driver):
    assert not table.unexplained(), "look up functions that may allocate, and are neither hooked nor explained in lookup_table.py"
