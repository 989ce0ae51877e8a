# SPDX-License-Identifier: Apache-2.0
"""CUPTI as the second source, against the simulated device's CUPTI: calls that no hook can see, recorded with stacks;
calls that a hook sees too, recorded once; a refusal, said once."""
import glob
import os
import re
import subprocess
import sys

import pytest
import toy
from test_hooks import BUILD, SIM, cc, events, number, run, simulated

MAIN = """
    #include <dlfcn.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    int cudaMalloc(void **p, unsigned long n);
    int cudaFree(void *p);
    int cuptiSubscribe(void **s, void (*f)(void), void *u);
    static void nothing(void) {}
    static void driver_starts(void) { /* as libcuda does in cuInit */
        const char *path = getenv("CUDA_INJECTION64_PATH");
        int (*init)(void) = path ? (int (*)(void))dlsym(dlopen(path, RTLD_NOW), "InitializeInjection") : 0;
        if (init) init();
    }
    int main(int n, char **v) {
        unsigned long given[3] = { 0 };
        void *p, *s, *lib;
        if (strstr(v[1], "taken")) cuptiSubscribe(&s, nothing, 0);
        driver_starts();
        if (strstr(v[1], "hooked")) { if (cudaMalloc(&p, 4444)) return 9; printf("%lu\\n", (unsigned long)p); cudaFree(p); }
        if (strstr(v[1], "later")) printf("%d\\n", cuptiSubscribe(&s, nothing, 0));
        if (!strstr(v[1], "deep")) return 0;
        lib = dlopen("deepbind.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
        int rc = ((int (*)(unsigned long *))dlsym(lib, "deepbind_work"))(given);
        printf("%lu\\n%lu\\n%lu\\n", given[0], given[1], given[2]);
        return rc;
    }"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cupti")
    cc(folder, "deepbind.so", "deepbind.c", SIM)
    cc(folder, "main", MAIN, SIM)
    return folder


@pytest.fixture(autouse=True)
def clean(place):
    yield
    for name in os.listdir(place):
        if ".gmt" in name:
            os.unlink(place / name)


def told(place):
    return [(e["kind"], e["name"], number(e.get("addr", 0)), e["size"])
            for e in events(place, "mem_alloc", "mem_free", "mem_fail", "refused")]


def deep(given):
    a, b, c = given
    return [("mem_alloc", "cudaMalloc", a, 1111), ("mem_free", "cudaFree", a, 0),
            ("mem_alloc", "cuMemAlloc_v2", b, 2222), ("mem_free", "cuMemFree_v2", b, 0),
            ("mem_alloc", "cudaMallocManaged", c, 3333), ("mem_fail", "cudaMalloc", 0, 1 << 50),
            ("mem_free", "cudaFree", c, 0), ("refused", "cudaFree", c, 0)]


def test_calls_that_cannot_be_interposed(place):
    done = simulated(place / "main", "deep", folder=place, GPUMEMTRACE_CUPTI="1")
    assert done.stderr == ""
    assert told(place) == deep(map(int, done.stdout.split()))
    noted = events(place, "mem_alloc", "mem_free", "mem_fail")
    assert all(e["flags"] & 4 and e["stack"] for e in noted)
    assert [e["device"] for e in noted if e["kind"] == "mem_alloc"] == [0, 0, 0]
    assert [e["arg1"] for e in noted if e["kind"] == "mem_fail"] == [2]
    stack = toy.tool("stack", place / "run.gmt", str(noted[0]["stack"]))
    assert "deepbind_work" in stack


def test_off_unless_asked_for(place):
    done = simulated(place / "main", "deep", folder=place)
    assert done.stderr == "" and not os.path.exists(place / "run.gmt")


def test_a_call_that_a_hook_sees_is_recorded_once(place):
    done = simulated(place / "main", "hooked", folder=place, GPUMEMTRACE_CUPTI="1")
    p = int(done.stdout)
    assert told(place) == [("mem_alloc", "cudaMalloc", p, 4444), ("mem_free", "cudaFree", p, 0)]
    assert not any(e["flags"] & 4 for e in events(place, "mem_alloc", "mem_free"))
    assert toy.facts(place / "run.gmt")["cupti"] == "subscribed"


def test_both_in_one_program(place):
    done = simulated(place / "main", "hooked, deep", folder=place, GPUMEMTRACE_CUPTI="1")
    first, *given = map(int, done.stdout.split())
    assert told(place) == [("mem_alloc", "cudaMalloc", first, 4444), ("mem_free", "cudaFree", first, 0), *deep(given)]


def test_a_refusal_is_said_once_and_changes_nothing_else(place):
    done = simulated(place / "main", "taken, hooked, deep", folder=place, GPUMEMTRACE_CUPTI="1")
    assert done.stderr.startswith("gpumemtrace: CUPTI is not used") and done.stderr.count("\n") == 1
    first = int(done.stdout.split()[0])
    assert told(place) == [("mem_alloc", "cudaMalloc", first, 4444), ("mem_free", "cudaFree", first, 0)]
    assert toy.facts(place / "run.gmt")["cupti"].startswith("cuptiSubscribe: 39 ")


def test_a_tool_of_the_program_gets_cupti(place):
    """As torch.profiler, which saw none of 28 kernels on a card as long as we held the one subscription."""
    done = simulated(place / "main", "hooked, later, deep", folder=place, GPUMEMTRACE_CUPTI="1")
    first, result = map(int, done.stdout.split()[:2])
    assert result == 0 and done.stderr == ""
    assert told(place) == [("mem_alloc", "cudaMalloc", first, 4444), ("mem_free", "cudaFree", first, 0)]
    assert toy.facts(place / "run.gmt")["cupti"] == "left to another tool of the program"


def test_each_tool_reaches_the_cupti_that_it_was_linked_with(tmp_path):
    for version in 12, 13:
        cc(tmp_path, f"libcupti.so.{version}", "int cuptiSubscribe(void **s, void *f, void *u) { *s = f; return %d + !u; }\n" % (10 * version),
           f"-Wl,-soname,libcupti.so.{version}")
        cc(tmp_path, f"tool{version}.so", "int cuptiSubscribe(void **, void *, void *); int go(void) { void *s; return cuptiSubscribe(&s, &s, 0); }\n",
           str(tmp_path / f"libcupti.so.{version}"), f"-Wl,-rpath,{tmp_path}")
    both = ["-c", f"import ctypes; print([ctypes.CDLL('{tmp_path}/tool%d.so' % v).go() for v in (12, 13)])"]
    assert run(sys.executable, *both, folder=tmp_path).stdout == run(sys.executable, *both, preload=[toy.SHIM], folder=tmp_path).stdout == "[121, 131]\n"


def test_the_drivers_slot_is_left_to_who_has_it(place):
    """nsys and ncu come by the same variable: theirs stays."""
    program = cc(place, "environment", """
        #include <stdio.h>
        #include <stdlib.h>
        int main() { puts(getenv("CUDA_INJECTION64_PATH") ?: "-"); return 0; }
        """)
    env = {"GPUMEMTRACE_CUPTI": "1"}
    assert run(program, preload=[toy.SHIM], folder=place, **env).stdout.strip() == toy.SHIM
    assert run(program, preload=[toy.SHIM], folder=place, CUDA_INJECTION64_PATH="/x", **env).stdout == "/x\n"
    assert run(program, preload=[toy.SHIM], folder=place).stdout == "-\n"


def test_every_call_with_cupti_listening(place):
    """Nothing more, nothing less than without it."""
    subprocess.run(["make", "-s", "build/programs/every_call"], cwd=toy.ROOT, check=True)
    done = simulated(os.path.join(BUILD, "programs/every_call"), folder=place, GPUMEMTRACE_CUPTI="1")
    said = [(k, f, number(a), int(n)) for k, f, a, n in map(str.split, done.stdout.splitlines())]
    assert [(e["kind"], e["name"], number(e.get("addr", 0)), e.get("size", 0))
            for e in events(place) if "name" in e] == said


@pytest.mark.parametrize("version,how", [(130202, "gpumemtrace beside others"), (130001, "alone"), (24, "alone")])
def test_beside_others_where_cupti_can(tmp_path, version, how):
    """From 13.2 on, torch.profiler and others keep their own subscription."""
    headers = glob.glob(os.path.join(toy.ROOT, ".venv-newest/lib/python3*/site-packages/nvidia/cu13/include"))
    rest = glob.glob(os.path.join(toy.ROOT, ".venv/lib/python3*/site-packages/nvidia/cu13/include"))
    if not headers or not os.path.exists(os.path.join(headers[0], "cupti.h")):
        pytest.skip("no headers of CUPTI 13.2")
    cc(tmp_path, "libcupti.so.13", "fake_cupti.c", "-DVERSION=%d" % version, "-isystem", headers[0], "-isystem", rest[0])
    program = cc(tmp_path, "main", """
        #include <dlfcn.h>
        #include <stdlib.h>
        int main() {
            void *lib = dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW);
            int (*init)(void) = (int (*)(void))dlsym(lib, "InitializeInjection");
            return !(init() && init());
        }""")
    said = run(program, preload=[toy.SHIM], folder=tmp_path, GPUMEMTRACE_CUPTI="1").stdout.splitlines()
    assert said[0] == how
    with open(os.path.join(toy.ROOT, "cupti/callbacks.def")) as f:
        wanted = re.findall(r"^CALL\((\w+), (\d+)", f.read(), re.M)
    assert sorted(said[1:]) == sorted("%d %s" % ({"DRIVER": 1, "RUNTIME": 2}[d], n) for d, n in wanted)
