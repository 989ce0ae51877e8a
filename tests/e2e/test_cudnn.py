# SPDX-License-Identifier: Apache-2.0
"""Workspaces of cuDNN: what was asked for is recorded, each caller reaches the cuDNN that it was linked with, and a program finds
cuDNN by name only where there is one."""
import glob
import json
import os
import re

import pytest
import toy
from conftest import ROOT
from test_hooks import cc, events, number, run

pytestmark = pytest.mark.forks

NO_TENSOR = 128  # of the flags: a block of no new tensor
UNIT = 512


def units(size):
    return -(-size // UNIT)


@pytest.mark.matrix
@pytest.mark.real
def test_what_every_block_was_asked_for(programs, tool):
    """Beside PyTorch's own record of its requests."""
    history = programs.folder / "history.json"
    recording = programs.traced("convolutions.py", HISTORY=history)
    requests = [r for r in json.loads(history.read_text()) if r[0] == "alloc"]
    blocks, live = [], {}
    for e in tool.events(recording):
        if e.get("kind") == "block_alloc":
            live[e["addr"]] = len(blocks)
            blocks.append([e, 0])
        elif e.get("kind") == "tag_asked":
            blocks[live[e["addr"]]][1] = max(e["size"], blocks[live[e["addr"]]][1])
    assert [e["addr"] for e, _ in blocks] == [address for _, address, _ in requests]
    workspaces = 0
    for (event, asked), (_, _, size) in zip(blocks, requests):
        assert units(asked or event["size"]) == units(size), event
        workspaces += bool(event["flags"] & NO_TENSOR) and event["size"] >= size + UNIT
    assert workspaces > 10


def rows_of(text, kind):
    return [line.split() for line in text.splitlines() if line.startswith(kind)]


def test_as_much_as_on_a_card(programs):
    """Beside an H100: what convolutions ask for, together and one by one; reserves of recurrent networks to the byte, their workspaces nearly."""
    there = (ROOT / "tests/data/cudnn-h100.txt").read_text()
    here = programs("workspaces.py").stdout
    convolutions = list(zip(rows_of(there, "conv"), rows_of(here, "conv")))
    assert len(convolutions) == 264 and all(a[:10] == b[:10] for a, b in convolutions)
    for numbers in ("tf32", "bf16"):
        for column, most in ((10, 0.1), (11, 0.2), (12, 0.3)):  # forward, gradient of the input, of the filter
            pairs = [(int(a[column]), int(b[column])) for a, b in convolutions if a[1:3] == [numbers, "first"]]
            assert sum(abs(a - b) for a, b in pairs) <= most * sum(a for a, _ in pairs), (numbers, column)
    networks = list(zip(rows_of(there, "rnn"), rows_of(here, "rnn")))
    assert len(networks) == 24
    for a, b in networks:
        (asked, kept), (ours, ours_kept) = ([int(n) for n in row[row.index("backward") - 2:][:2]] for row in (a, b))
        assert kept == ours_kept and a[:9] == b[:9]
        assert 0.8 * asked <= ours <= 1.1 * asked or a[3:9] == "64 128 1 128 200 True".split(), a


@pytest.mark.parametrize("table", sorted((ROOT / "tests/data").glob("cudnn-*.txt")), ids=lambda path: path.stem)
def test_tables_of_cards(table):
    """Each names a card that there is, and has all convolutions."""
    card = table.stem.partition("-")[2]
    assert re.search(rf'CARD\("{card}-', (ROOT / "simgpu/core/cards.def").read_text()), card
    keys = [row[:10] for row in rows_of((ROOT / "tests/data/cudnn-h100.txt").read_text(), "conv")]
    assert [row[:10] for row in rows_of(table.read_text(), "conv")] == keys


# ---- without PyTorch and cuDNN ----

def cudnn(folder, name, mark, more="", *flags):
    """A library of that name. A plan's workspace is what stands at its address; what it executes gives `mark` back."""
    path = os.path.join(str(folder), "map")
    with open(path, "w") as f:
        f.write(name + " { global: *; };")
    return cc(folder, name, """
        #include <dlfcn.h>
        #include <stdint.h>
        int cudnnBackendSetAttribute(void *d, int name, int type, int64_t n, const void *v)
            { return v && d && name && type && n ? 0 : %d; }
        int cudnnBackendGetAttribute(const void *d, int name, int type, int64_t room, int64_t *n, void *v)
            { *(int64_t *)v = name == 402 && type == 3 && room == 1 && !n ? *(const int64_t *)d : -1; return 0; }
        static int inside(void *h, const void *plan, const void *pack);
        int cudnnBackendExecute(void *h, const void *plan, const void *pack)
            { return h ? inside(h, plan, pack) : %d; }
        %s
        """ % (mark, mark, more or "static int inside(void *h, const void *plan, const void *pack) { return 0; }"),
        "-fno-semantic-interposition", "-Wl,-Bsymbolic", "-Wl,--version-script," + path, *flags)


USES = """
    #include <stdint.h>
    int cudnnBackendSetAttribute(void *d, int name, int type, int64_t n, const void *v);
    int cudnnBackendGetAttribute(const void *d, int name, int type, int64_t room, int64_t *n, void *v);
    int cudnnBackendExecute(void *h, const void *plan, const void *pack);
    static void make(int64_t *plan) { cudnnBackendSetAttribute(plan, 401, 15, 1, &plan); }
    static void ask(int64_t *plan) { int64_t bytes; cudnnBackendGetAttribute(plan, 402, 3, 1, 0, &bytes); }
    static int execute(void *h, int64_t *plan, uint64_t workspace) {
        char pack;
        cudnnBackendSetAttribute(&pack, 1003, 6, 1, &workspace);
        return cudnnBackendExecute(h, plan, &pack);
    }
    """

TWO = """
    #include <dlfcn.h>
    #include <stdio.h>
    int main(int n, char **v) {
        void *lib[9];
        if (v[1][0] == 'g') dlopen("libcudnn.so.7", RTLD_NOW | RTLD_GLOBAL);
        for (int i = 0; i < 3; i++) {
            lib[8] = dlopen("libuser8.so", RTLD_NOW | RTLD_LOCAL), lib[7] = dlopen("libuser9.so", RTLD_NOW | RTLD_LOCAL);
            for (int k = 7; k < 9; k++)
                printf("%d\\n", lib[k] ? ((int (*)(void))dlsym(lib[k], "use"))() : -1);
            if (i) dlclose(lib[7]), dlclose(lib[8]);
        }
        return 0;
    }
    """


@pytest.mark.parametrize("first", ["global", "none"])
def test_two_releases_in_one_process(tmp_path, first):
    for release in ("7", "8", "9"):
        lib = cudnn(tmp_path, "libcudnn.so." + release, int(release))
        cc(tmp_path, "libuser%s.so" % release, USES + "int use(void) { int64_t plan = 8; return execute(0, &plan, 8); }\n", lib)
    program = cc(tmp_path, "main", TWO)
    for preload in ([], [toy.SHIM]):
        said = run(program, first, preload=preload, folder=tmp_path).stdout
        assert said.split() == ["9", "8"] * 3, preload


def cudnn_of_parts(folder):
    """cuDNN 9 is several libraries: the outer one and one of the inner have functions of the same names, and others need those of the
    inner one."""
    cc(folder, "libcudnn_ops.so.9", "\nint of_no_interest;\n")
    graph = cudnn(folder, "libcudnn_graph.so.9", 77)
    cc(folder, "libcudnn_engines.so.9", USES + "int engine(void) { int64_t plan = 39 << 20; make(&plan); ask(&plan);"
       " return execute(0, &plan, 0xb0000000); }\n", "-Wl,--no-as-needed", str(folder / "libcudnn_ops.so.9"), graph)
    return cudnn(folder, "libcudnn.so.9", 9, """
        static int inside(void *h, const void *plan, const void *pack)
            { return ((int (*)(void))dlsym(dlopen("libcudnn_engines.so.9", RTLD_NOW | RTLD_LOCAL), "engine"))(); }
        """)


def test_parts_of_one_cudnn(tmp_path):
    program = cc(tmp_path, "main", USES + "int main(int n, char **v) { int64_t plan = 8; return execute(&n, &plan, 8) != 77; }\n",
                 cudnn_of_parts(tmp_path))
    for preload in ([], [toy.SHIM]):
        run(program, preload=preload, folder=tmp_path)


LOOKS = """
    #include <dlfcn.h>
    #include <stdio.h>
    static void look(void *h, const char *what) {
        static const char *const names[] = { "cudnnBackendSetAttribute", "cudnnBackendGetAttribute", "cudnnBackendExecute" };
        for (int i = 0; i < 3; i++) {
            void *p = (dlerror(), dlsym(h, names[i]));
            Dl_info info = { 0 };
            if (p) dladdr(p, &info);
            printf("%s %s: %s%s\\n", what, names[i], p ? info.dli_fname : "none", dlerror() ? " error" : "");
        }
    }
    int main() {
        void *lib;
        look(RTLD_DEFAULT, "default"), look(dlopen(0, RTLD_NOW), "all");
        look(lib = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL), "handle"), look(RTLD_DEFAULT, "default");
        dlopen("libcudnn.so.9", RTLD_NOW | RTLD_GLOBAL);
        look(RTLD_DEFAULT, "default"), look(dlopen(0, RTLD_NOW), "all");
        return 0;
    }
    """


@pytest.mark.parametrize("enabled", ["on", "off"])
def test_found_by_name_where_it_is(tmp_path, enabled):
    cudnn(tmp_path, "libcudnn.so.9", 9)
    program = cc(tmp_path, "main", LOOKS)
    alone = run(program, folder=tmp_path).stdout
    assert alone.count(": none error") == 9 and alone.count("libcudnn.so.9") == 9
    assert run(program, preload=[toy.SHIM], folder=tmp_path, GPUMEMTRACE_ENABLED=enabled).stdout == alone


@pytest.mark.parametrize("local, shared, found", [("", "", "1"), ("", "9", "9"), ("8", "9", "9"), ("9", "8", "8")])
def test_a_caller_that_was_linked_with_none(tmp_path, local, shared, found):
    """It has the one that is there for all. Without one an error of cuDNN, where the loader would have ended the program."""
    for release in ("8", "9"):
        cudnn(tmp_path, "libcudnn.so." + release, int(release))
    cc(tmp_path, "libuser.so", USES + "int use(void) { int64_t plan; return execute(0, &plan, 8); }\n")
    program = cc(tmp_path, "main", """
        #include <dlfcn.h>
        #include <stdio.h>
        static void load(const char *release, int how)
            { char name[20]; snprintf(name, sizeof(name), "libcudnn.so.%s", release); if (*release) dlopen(name, RTLD_NOW | how); }
        int main(int n, char **v) {
            load(v[1], RTLD_LOCAL), load(v[2], RTLD_GLOBAL);
            printf("%d", ((int (*)(void))dlsym(dlopen("libuser.so", RTLD_LAZY), "use"))());
            return 0;
        }
        """)
    for preload in [[toy.SHIM]] + [[]] * bool(shared):
        assert run(program, local, shared, preload=preload, folder=tmp_path).stdout == found, preload


OWN = """
    #include <stdint.h>
    #include <stdio.h>
    unsigned long cudnnGetVersion(void);
    void cudnnGetLastErrorString(char *text, unsigned long room);
    int cudnnBackendCreateDescriptor(int kind, void **d);
    int cudnnBackendFinalize(void *d);
    int cudnnBackendSetAttribute(void *d, int name, int type, int64_t n, const void *v);
    int cudnnBackendGetAttribute(const void *d, int name, int type, int64_t room, int64_t *n, void *v);
    int cudnnBackendExecute(void *h, const void *plan, const void *pack);
    static void say(const char *what, int rc, int64_t n, uint64_t value) {
        char text[1000] = "";
        cudnnGetLastErrorString(text, sizeof(text));
        printf("%s %d %ld %lu '%s'\\n", what, rc, (long)n, (unsigned long)value, text);
    }
    int main() {
        void *pack = 0, *plan = 0;
        int64_t ids[] = { 1, 2 }, n = -1, value = -1;
        int rc;
        uint64_t pointers[] = { 512, 1024 }, workspace = 4096;
        printf("%lu\\n", cudnnGetVersion());
        say("pack", cudnnBackendCreateDescriptor(16, &pack), 0, 0);
        say("plan", cudnnBackendCreateDescriptor(5, &plan), 0, 0);
        say("workspace", cudnnBackendSetAttribute(pack, 1003, 6, 1, &workspace), 0, 0);
        say("ids", cudnnBackendSetAttribute(pack, 1000, 3, 2, ids), 0, 0);
        say("pointers", cudnnBackendSetAttribute(pack, 1001, 6, 2, pointers), 0, 0);
        say("no such", cudnnBackendSetAttribute(pack, 402, 6, 1, pointers), 0, 0);
        say("done", cudnnBackendFinalize(pack), 0, 0);
        rc = cudnnBackendGetAttribute(pack, 1003, 6, 1, &n, &workspace), say("asked", rc, n, workspace);
        rc = cudnnBackendGetAttribute(plan, 402, 3, 1, &n, &value), say("not done", rc, n, (uint64_t)value);
        say("execute", cudnnBackendExecute(0, plan, pack), 0, 0);
        return 0;
    }
    """


@pytest.mark.parametrize("environment", [".venv", ".venv-newest", ".venv-cu12"])
def test_nvidias_own(tmp_path, environment):
    """Without a card it keeps attributes and refuses the rest: the same codes and the same texts of errors."""
    found = glob.glob(os.path.join(toy.ROOT, environment, "lib/python3*/site-packages/nvidia/cudnn/lib"))
    if not found:
        pytest.skip("no cuDNN in " + environment)
    libraries = found + glob.glob(os.path.join(found[0], "../../c*/lib"))
    program = cc(tmp_path, "main", OWN, os.path.join(found[0], "libcudnn.so.9"), "-Wl,--allow-shlib-undefined")
    alone = run(program, folder=tmp_path, libraries=libraries).stdout
    assert "workspace 0 0 0 " in alone and "asked 0 1 4096 " in alone, alone
    assert run(program, preload=[toy.SHIM], folder=tmp_path, libraries=libraries).stdout == alone


PLANS = USES + """
    #include <pthread.h>
    #define MIB (1l << 20)
    struct device { signed char type, index; };
    void took(void *p, long n, unsigned long a, unsigned long r, struct device d) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
    void refused(long n, unsigned long a, unsigned long r, struct device d) __asm__("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
    static const struct device cuda = { 1, 0 };
    static int64_t plans[16];
    static int64_t *plan(int i, int64_t bytes) { plans[i] = bytes; make(&plans[i]); ask(&plans[i]); return &plans[i]; }
    static uint64_t block(uint64_t address, long bytes) { took((void *)address, bytes, bytes, bytes, cuda); return address; }
    static void *elsewhere(void *address) { block((uint64_t)address, 40 * MIB); return 0; }
    int main() {
        pthread_t thread;
        execute(0, plan(0, 39 * MIB), block(0x10000000, 40 * MIB));
        execute(0, plan(1, 40 * MIB), block(0x20000000, 40 * MIB)); /* all of it */
        block(0x30000000, 40 * MIB); /* a search for the fastest */
        execute(0, plan(2, 39 * MIB + 1), 0x30000000), execute(0, plan(3, 39 * MIB + 700), 0x30000000);
        execute(0, plan(4, 39 * MIB + 600), 0x30000000), execute(0, plan(5, 0), 0x30000000);
        execute(0, plan(6, 39 * MIB), block(0x40000000, 40 * MIB) + 512); /* not where the block begins */
        execute(0, plan(7, 41 * MIB), block(0x50000000, 40 * MIB)); /* more than there is */
        refused(80 * MIB, 0, 0, cuda); /* half of it will do */
        execute(0, plan(8, 39 * MIB), block(0x60000000, 40 * MIB));
        execute(0, plan(8, 39 * MIB), block(0x70000000, 40 * MIB));
        plan(9, 39 * MIB), make(&plans[9]); /* another at the same address, and it was not asked */
        execute(0, &plans[9], block(0x80000000, 40 * MIB));
        pthread_create(&thread, 0, elsewhere, (void *)0x90000000), pthread_join(thread, 0); /* another thread's block */
        execute(0, plan(10, 39 * MIB), 0x90000000);
        execute(0, plan(11, MIB), block(0xa0000000, MIB)); /* always cut from a larger one */
        block(0xb0000000, 40 * MIB); /* cuDNN executes a plan of its own in it, and this one was not asked */
        return execute(&thread, &plans[12], 0xb0000000) != 77;
    }
    """


def test_what_plans_ask_for(tmp_path):
    """By a stand-in for PyTorch that reports its blocks as that does."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "build-version").write_text("2.11.0\n")
    torch = cc(tmp_path / "lib", "libc10.so", """
        void _ZN3c1010TensorImpl17release_resourcesEv(void) {}
        void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void) {}
        void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(void) {}
        """)
    program = cc(tmp_path, "main", PLANS, torch, cudnn_of_parts(tmp_path))
    run(program, preload=[toy.SHIM], libraries=[str(tmp_path / "lib")], folder=tmp_path)
    mib = 1 << 20
    assert [(number(e["addr"]), e["size"]) for e in events(tmp_path, "tag_asked")] == [
        (0x10000000, 39 * mib), (0x20000000, 40 * mib), (0x30000000, 39 * mib + 1), (0x30000000, 39 * mib + 700),
        (0x70000000, 39 * mib)]
