# SPDX-License-Identifier: Apache-2.0
"""The CUDA hooks: what a program says it allocated and freed is what is recorded, whichever way it came to CUDA's
functions; and every look-up by name gives what it would have given alone, or our hook for it."""
import os
import re
import subprocess
import sys

import pytest
import toy

sys.path.insert(0, os.path.join(toy.ROOT, "tests/driver"))
import lookups  # noqa: E402

BUILD = os.path.join(toy.ROOT, "build")
SIM = os.path.join(BUILD, "libsimgpu.so")
HERE = os.path.dirname(os.path.abspath(__file__))
CUDARTS = {
    "13": ".venv/lib/python3*/site-packages/nvidia/cu13/lib/libcudart.so.13",
    "12": ".cuda-headers/headers-cu12/nvidia/cuda_runtime/lib/libcudart.so.12",
    "11": ".cuda-headers/headers-cu11/nvidia/cuda_runtime/lib/libcudart.so.11.0",
}


def cc(folder, name, source, *flags):
    """Compiles C (text, or the name of a file here); libraries are called *.so*."""
    out = os.path.join(str(folder), name)
    if "\n" in source:
        path = os.path.join(str(folder), name + ".c")
        with open(path, "w") as f:
            f.write(source)
    else:
        path = os.path.join(HERE, source)
    shared = ["-shared", "-fPIC", "-Wl,-soname," + name] if ".so" in name else []
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-Wno-implicit-function-declaration", *shared, "-o", out, path, *flags,
                    "-ldl"], check=True)
    return out


def run(program, *args, preload=(), libraries=(), folder, **env):
    """Runs it with these preloaded; output goes to run.gmt in the folder."""
    full = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_"))}
    full.update(LD_PRELOAD=":".join(preload), LD_LIBRARY_PATH=":".join([*libraries, str(folder)]),
                GPUMEMTRACE_OUTPUT=os.path.join(str(folder), "run.gmt"), **env)
    done = subprocess.run([str(program), *args], env=full, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done


def simulated(program, *args, folder, before=(), after=(), **env):
    return run(program, *args, preload=[*before, toy.SHIM, *after, SIM], libraries=[os.path.join(BUILD, "simgpu")],
               folder=folder, **env)


def events(folder, *kinds):
    return [e for e in toy.dump(os.path.join(str(folder), "run.gmt")) if e["kind"] in kinds or not kinds]


def number(value):
    return int(str(value), 0)


@pytest.fixture(scope="session", autouse=True)
def every_call():
    subprocess.run(["make", "-s", "build/programs/every_call"], cwd=toy.ROOT, check=True)
    return os.path.join(BUILD, "programs/every_call")


def rows(kind):
    """Rows of hooks.def, as lists of their plain columns."""
    with open(os.path.join(toy.ROOT, "shim/hooks.def")) as f:
        found = re.findall(r"^%s\(([^()]*)" % kind, f.read(), re.M)
    return [[c.strip() for c in row.rstrip(", )\n").split(",")] for row in found]


def fake_driver(folder, cuda):
    """A driver of this version of CUDA, with all forms of the hooked functions that are not newer; before 11.5 with
    the old hash table only, as NVIDIA's."""
    forms = [(r[0], r[1], r[2], r[3]) for r in rows("DRIVER") if r[1] != "cuGetProcAddress"]
    forms += [(r[0], r[0], r[1], r[2]) for r in rows("KNOWN")]
    path = os.path.join(str(folder), "forms.def")
    with open(path, "w") as f:
        f.writelines("FORM(%s)\n" % ", ".join(r) for r in forms if int(r[2]) <= cuda)
    cc(folder, "libcuda.so.1", "fake_libcuda.c", "-DFAKE_CUDA=%d" % cuda, '-DFORMS="%s"' % path,
       "-Wl,--hash-style=" + ("sysv" if cuda < 11050 else "gnu"))


@pytest.fixture(scope="session")
def fake(tmp_path_factory):
    """A driver that knows every name, and a tool that watches what is given for them."""
    folder = tmp_path_factory.mktemp("fake")
    fake_driver(folder, 13050)
    cc(folder, "observer.so", "observer.c")
    return folder


@pytest.mark.parametrize("how", ["exported", "lookup"])
def test_every_call(every_call, tmp_path, how):
    done = simulated(every_call, how, folder=tmp_path)
    said = [(k, f, number(a), int(n)) for k, f, a, n in map(str.split, done.stdout.splitlines())]
    noted = events(tmp_path)
    ours = [(e["kind"], e["name"], number(e.get("addr", 0)), e.get("size", 0)) for e in noted if "name" in e]
    assert ours == said
    assert all(e["device"] == 0 for e in noted if e["kind"] in ("phys_create", "pool_create", "ctx_create", "meminfo"))
    for e in noted:
        if e["kind"] == "mem_alloc":
            assert e["device"] == (-1 if "Host" in e["name"] else 0), e
    [failed] = [e for e in noted if e["kind"] == "mem_fail"]
    assert failed["arg1"] == 2 and failed["device"] == 0
    before = noted[noted.index(failed) - 1]  # what was free when the call failed
    assert before["kind"] == "meminfo" and 0 < before["arg0"] < before["arg1"]


def test_the_program_sees_no_difference(every_call, tmp_path):
    """Only the addresses of handles differ."""
    ours = simulated(every_call, folder=tmp_path).stdout
    alone = run(every_call, preload=[SIM], libraries=[os.path.join(BUILD, "simgpu")], folder=tmp_path).stdout
    hide = re.compile("0x[0-9a-f]+")
    assert hide.sub("x", ours) == hide.sub("x", alone)


def test_facts_of_the_device(every_call, tmp_path):
    simulated(every_call, folder=tmp_path, SIMGPU_CARD="a100-40g")
    facts = toy.facts(tmp_path / "run.gmt")
    assert "A100" in facts["device.0.name"] and facts["device.0.compute_capability"] == "8.0"
    assert facts["device.0.sm_count"] == "108" and 39 << 30 < int(facts["device.0.total_bytes"]) <= 40 << 30
    assert re.fullmatch(r"1[0-9]\.[0-9]", facts["driver.version"]) and facts["runtime.version"]
    assert re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", facts["device.0.uuid"])


def expected_hook(name, version, flags):
    """Of hooks.def by the rule of cuGetProcAddress; None = passed through."""
    known = [(int(r[3]), int(r[2]), r[0]) for r in rows("DRIVER") if r[1] == name]
    known += [(int(r[2]), int(r[1]), None) for r in rows("KNOWN") if r[0] == name]
    fitting = [r for r in known if r[1] <= version and r[0] <= bool(flags & 2)]
    return max(fitting, key=lambda r: r[:2])[2] if fitting else None


@pytest.mark.parametrize("version", CUDARTS)
def test_what_a_real_runtime_is_given(fake, tmp_path, version):
    """NVIDIA's own runtime asks a driver for some 400 functions. For those that allocate and free it must be given
    ours, of the right form; for all others the driver's own. (It stops soon after: the driver is not NVIDIA's.)"""
    import glob
    found = glob.glob(os.path.join(toy.ROOT, CUDARTS[version]))
    if not found:
        pytest.skip("no libcudart of CUDA " + version)
    program = cc(tmp_path, "ask", """
        #include <dlfcn.h>
        int main(int n, char **v) {
            int count, (*f)(int *) = dlsym(dlopen(v[1], RTLD_NOW | RTLD_LOCAL), "cudaGetDeviceCount");
            return f(&count) != 801;
        }""")
    log = run(program, found[0], preload=[str(fake / "observer.so"), toy.SHIM], libraries=[str(fake)],
              folder=tmp_path).stderr
    asked = re.findall(r"^ask '(.*)' (\d+) (\d+) (\S+) (\S+)$", log, re.M)
    assert len(asked) > 350
    given = {}
    for name, wanted, flags, library, symbol in asked:
        hook = expected_hook(name, int(wanted), int(flags))
        if hook:
            assert (library, symbol) == ("libgpumemtrace.so", hook), name
            given[name, int(flags)] = symbol
        else:
            assert library in ("libcuda.so.1", "-"), name
    assert {n for n, _ in given} > {"cuMemAlloc", "cuMemFree", "cuMemAllocAsync", "cuMemFreeAsync", "cuMemHostAlloc",
                                    "cuGetProcAddress", "cuIpcOpenMemHandle", "cuArray3DCreate"}
    assert given["cuMemFreeAsync", 2] == "cuMemFreeAsync_ptsz" and given["cuMemFreeAsync", 0] == "cuMemFreeAsync"
    if version != "11":
        assert asked[0][:4] == ("", "0", "0", "-")


def test_newer_than_we_know(fake, tmp_path):
    """What a later CUDA may have changed is not touched."""
    program = cc(tmp_path, "ask", """
        #include <dlfcn.h>
        #include <stdio.h>
        #include <string.h>
        static int (*get)(const char *, void **, int, unsigned long, int *);
        static void ask(const char *name, int version, unsigned long flags) {
            void *p = 0; int status = 7; Dl_info i = {0};
            int rc = get(name, &p, version, flags, &status);
            if (p) dladdr(p, &i);
            printf("%d %d %s\\n", rc, status, p ? strrchr(i.dli_fname, '/') + 1 : "none");
        }
        int main() {
            get = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
            ask("", 0, 0); ask("cuMemAlloc", 2000, 0); ask("cuMemAlloc", 12000, 0); ask("cuMemAlloc", 99000, 0);
            ask("cuNewInNextCuda", 99000, 0); ask("cuMemAllocHost", 3020, 2); ask("cuMemCreate", 10010, 0);
            return 0;
        }""")
    ours, driver = "0 0 libgpumemtrace.so", "0 0 libcuda.so.1"
    assert run(program, preload=[toy.SHIM], libraries=[str(fake)], folder=tmp_path).stdout.splitlines() == [
        "500 1 none", driver, ours, driver, driver, ours, driver]


@pytest.mark.parametrize("cuda", [11040, 12020, 12050, 13050])
def test_a_driver_older_than_the_program(tmp_path, cuda):
    """Which form a version means is the driver's decision: one of 12.4 gives cuCtxCreate_v3 to who asks for 12.5."""
    fake_driver(tmp_path, cuda)
    program = lookups.build(tmp_path)
    plain, ours = (lookups.ask(program, tmp_path, tmp_path, "cuNewInNextCuda", "cuLaunchKernel", traced=t) for t in (False, True))
    asked, mine, wrong = lookups.compare(plain, ours)
    assert not wrong, wrong[:5]
    assert asked > 9000 and mine > 4500
    given = [line for line in ours if line[:7] == "ask cuGetProcAddress_v2 cuCtxCreate 12050 0 0 0".split()]
    form = "v3" if cuda < 12050 else "v4"
    assert [g[-1] for g in given] == ["libgpumemtrace.so:cuCtxCreate_" + form]
    assert not [name for name in os.listdir(tmp_path) if ".gmt" in name]


LOOKUPS = """
    #include <dlfcn.h>
    #include <stdio.h>
    static void *ask(const char *what, void *handle, const char *name) {
        void *p;
        dlerror();
        p = dlsym(handle, name);
        printf("%s %s: %s%s\\n", what, name, p ? "found" : "none", dlerror() ? " error" : "");
        return p;
    }
    static void all(const char *what, void *h) {
        static const char *const names[] = { "cuMemAlloc_v2", "cuGetProcAddress", "cuGetProcAddress_v2", "cudaMalloc",
            "cuMemAlloc_v3", "cudnnCreate", "cublasCreate_v2", "cufftPlan1d", "cu", "", "malloc", "cuNewInNextCuda" };
        for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
            ask(what, h, names[i]), ask(what, h, names[i]);
    }
    int main(int n, char **v) {
        void *cuda;
        all("default", RTLD_DEFAULT);
        all("all", dlopen(NULL, RTLD_NOW));
        cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!cuda) return 1;
        all("default, loaded aside", RTLD_DEFAULT);
        all("libcuda", cuda);
        if (((int (*)(void *, long))dlsym(cuda, "cuMemAlloc_v2"))(&n, 1) != 801) return 2;
        all("libc", dlopen("libc.so.6", RTLD_NOW));
        dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
        all("default, loaded for all", RTLD_DEFAULT);
        all("all, loaded for all", dlopen(NULL, RTLD_NOW));
        return 0;
    }"""


def test_lookups_find_what_they_would_find_alone(fake, tmp_path):
    program = cc(tmp_path, "lookups", LOOKUPS)
    alone = run(program, libraries=[str(fake)], folder=tmp_path).stdout
    assert run(program, preload=[toy.SHIM], libraries=[str(fake)], folder=tmp_path).stdout == alone
    assert "default cuMemAlloc_v2: none error" in alone and "libcuda cuMemAlloc_v2: found\n" in alone


def test_a_library_finds_what_it_was_linked_with(fake, tmp_path):
    """dlsym(NULL, ...) of a library that was loaded aside and needs libcuda: what cuDNN does."""
    cc(tmp_path, "libplugin.so", """
        #include <dlfcn.h>
        int plugin(void) { int (*f)(void *, long) = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"); long p;
                           return f ? f(&p, 1) : -1; }
        """, "-Wl,--no-as-needed", str(fake / "libcuda.so.1"))
    program = cc(tmp_path, "main", """
        #include <dlfcn.h>
        int main() { void *p = dlopen("libplugin.so", RTLD_NOW | RTLD_LOCAL);
                     return ((int (*)(void))dlsym(p, "plugin"))() != 801; }
        """)
    for preload in ([], [toy.SHIM]):
        run(program, preload=preload, libraries=[str(fake)], folder=tmp_path)


def test_the_next_of_the_next(tmp_path):
    """RTLD_NEXT starts at whoever asks: three tools that each hand on to the next, asked twice."""
    for i in range(3):
        cc(tmp_path, "libtool%d.so" % i, """
            #include <dlfcn.h>
            int tool(int depth) {
                int (*f)(int) = dlsym(RTLD_NEXT, "tool"), (*again)(int) = dlsym(RTLD_NEXT, "tool");
                return depth > 9 || f != again ? -100 : f ? f(depth + 1) : depth;
            }
            """)
    program = cc(tmp_path, "main", "\nint tool(int); int main() { return tool(1) != 3; }", "-Wl,--no-as-needed",
                 "-L" + str(tmp_path), "-ltool0", "-ltool1", "-ltool2")
    run(program, preload=[toy.SHIM], folder=tmp_path)


INTERPOSER = """
    #include <dlfcn.h>
    #include <stdio.h>
    int cudaMalloc(void **p, unsigned long n) {
        int (*next)(void **, unsigned long) = dlsym(RTLD_NEXT, "cudaMalloc");
        int rc = next ? next(p, n) : -1;
        fprintf(stderr, "passed %lu %d\\n", n, rc);
        return rc;
    }
    """


@pytest.mark.parametrize("place", ["before", "after"])
def test_beside_another_interposer(tmp_path, place):
    """One that stands in front of us, or behind: each sees the call once, and so do we."""
    other = cc(tmp_path, "other.so", INTERPOSER)
    program = cc(tmp_path, "main", "\nint main() { void *p; return cudaMalloc(&p, 4096); }", SIM)
    done = simulated(program, folder=tmp_path, **{place: [other]})
    assert done.stderr == "passed 4096 0\n"
    assert [e["size"] for e in events(tmp_path, "mem_alloc")] == [4096]


def test_a_runtime_inside_a_library(tmp_path):
    """NCCL and cuBLAS carry a runtime of their own: nothing of it can be interposed but its way to the driver."""
    cc(tmp_path, "libnccl_like.so", "nccl_like.c", "-fvisibility=hidden", "-Wl,-Bsymbolic")
    program = cc(tmp_path, "main", """
        #include <dlfcn.h>
        #include <stdio.h>
        int main() {
            void *lib = dlopen("libnccl_like.so", RTLD_NOW | RTLD_LOCAL);
            unsigned long (*give)(unsigned long) = dlsym(lib, "nccl_like_give");
            void (*take)(unsigned long) = dlsym(lib, "nccl_like_take");
            unsigned long p = give(123456);
            printf("%lu\\n", p);
            take(p);
            return !p;
        }""")
    done = simulated(program, folder=tmp_path)
    found = [(e["kind"], e["name"], number(e["addr"]), e["size"]) for e in events(tmp_path, "mem_alloc", "mem_free")]
    assert found == [("mem_alloc", "cuMemAlloc_v2", int(done.stdout), 123456),
                     ("mem_free", "cuMemFree_v2", int(done.stdout), 0)]


def runtime_of(folder, major, base):
    """A runtime of a few functions whose addresses tell which one gave them."""
    with open(os.path.join(str(folder), "map"), "w") as f:
        f.write("libcudart.so.%s { global: *; };" % major)
    return cc(folder, "libcudart.so.%s" % major, """
        #include <stddef.h>
        __asm__(".text\\n.skip 256 * (%s - 10), 0xcc\\n");
        static char *next = (char *)%s;
        int cudaMalloc(void **p, size_t n) { *p = next; next += n; return 0; }
        int cudaFree(void *p) { return (char *)p < (char *)%s || (char *)p > next; }
        int cudaGetDevice(int *d) { *d = 0; return 0; }
        """ % (major, base, base), "-fno-toplevel-reorder", "-Wl,--version-script," + os.path.join(str(folder), "map"))


@pytest.fixture
def two_runtimes(tmp_path):
    for major, base in (("12", "0x120000000000"), ("13", "0x130000000000")):
        cudart = runtime_of(tmp_path, major, base)
        cc(tmp_path, "libuser%s.so" % major, """
            int cudaMalloc(void **p, unsigned long n); int cudaFree(void *p);
            void *give(unsigned long n) { void *p = 0; cudaMalloc(&p, n); return p; }
            int take(void *p) { return cudaFree(p); }
            """, cudart)
    return """
        #include <dlfcn.h>
        #include <stdio.h>
        static int use(void *lib, int i) {
            void *p = ((void *(*)(unsigned long))dlsym(lib, "give"))(100 + i);
            printf("%p\\n", p);
            return ((int (*)(void *))dlsym(lib, "take"))(p);
        }
        """


def check_two_runtimes(source, folder):
    done = run(cc(folder, "main", source), preload=[toy.SHIM], folder=folder)
    given = [int(line, 0) for line in done.stdout.split()]
    assert [p >> 40 for p in given] == [0x13, 0x12] * 3
    assert [(number(e["addr"]), e["size"]) for e in events(folder, "mem_alloc")] == list(zip(given, range(100, 106)))


def test_two_runtimes_side_by_side(two_runtimes, tmp_path):
    """Each caller reaches the runtime that it was linked with."""
    check_two_runtimes(two_runtimes + """
        int main() {
            void *lib[] = { dlopen("libuser13.so", RTLD_NOW | RTLD_LOCAL), dlopen("libuser12.so", RTLD_NOW | RTLD_LOCAL) };
            for (int i = 0; i < 6; i++)
                if (use(lib[i % 2], i)) return 1;
            return 0;
        }""", tmp_path)


def test_runtimes_that_come_and_go(two_runtimes, tmp_path):
    """An object that was unloaded is not called any more, though another stands in its place."""
    check_two_runtimes(two_runtimes + """
        int main() {
            for (int i = 0; i < 6; i++) {
                void *lib = dlopen(i % 2 ? "libuser12.so" : "libuser13.so", RTLD_NOW | RTLD_LOCAL);
                if (use(lib, i)) return 1;
                dlclose(lib);
            }
            return 0;
        }""", tmp_path)


def test_nothing_to_call(tmp_path):
    """A program that does without CUDA where there is none: an error, no crash, no file."""
    program = cc(tmp_path, "main", """
        extern int cudaMalloc(void **p, unsigned long n) __attribute__((weak));
        extern int cuMemAlloc_v2(void **p, unsigned long n) __attribute__((weak));
        int main() { void *p; return cudaMalloc && (cudaMalloc(&p, 1) != 3 || cuMemAlloc_v2(&p, 1) != 3); }
        """, "-Wl,-z,dynamic-undefined-weak")
    run(program, preload=[toy.SHIM], folder=tmp_path)
    assert not os.path.exists(tmp_path / "run.gmt")
