# SPDX-License-Identifier: Apache-2.0
"""The simulated device's runtime, driver, NVML and CUPTI: called by name as any program calls them, and seen
through PyTorch. What each call must answer is CUDA's documentation; sizes are checked against PyTorch's own."""
import os
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("SIMGPU_TEST_BUILD", os.path.join(ROOT, "build"))
SIM = os.path.join(BUILD, "libsimgpu.so")
GIB = 1 << 30
NAMES = ["api_cudart.def", "api_driver.def", "api_nvml.def", "api_cupti.def"]

pytestmark = pytest.mark.skipif(not os.path.exists(SIM), reason="built without CUDA headers")


def run(code, card="h100-80g", count=1, preload=SIM, **env):
    """Runs Python code on the simulated device; its standard output as a list of lines."""
    full = dict(os.environ, LD_PRELOAD=preload, LD_LIBRARY_PATH=os.path.join(BUILD, "simgpu"),
                SIMGPU_CARD=card, SIMGPU_COUNT=str(count))
    full.update(env)
    code = textwrap.dedent(code)
    if "SELF" in env:
        full["SELF"] = code  # for programs that start themselves again
    done = subprocess.run([sys.executable, "-c", code], env=full, capture_output=True, text=True,
                          timeout=600)
    return printed(done)


def run_torch(programs, code, **how):
    """The same of code that imports PyTorch, which a process that has imported it runs (forks.py)."""
    return printed(programs("-c", textwrap.dedent(code), traced=False, **how))


def printed(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split("\n")[:-1]


CTYPES = """
import ctypes, os
from ctypes import byref, c_int, c_size_t, c_void_p, c_uint64, c_char_p
L = ctypes.CDLL(None)
p, q, a, b, i = c_void_p(), c_void_p(), c_size_t(), c_size_t(), c_int()
def free(): L.cudaMemGetInfo(byref(a), byref(b)); return a.value
def alloc(n):
    p = c_void_p(); r = L.cudaMalloc(byref(p), c_size_t(n)); return r, p
"""


def ask(code, **kw):
    return run(CTYPES + textwrap.dedent(code), **kw)


# ---- names ----

def exported():
    out = subprocess.run(["nm", "-D", "--defined-only", SIM], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in out.splitlines()}


def test_every_name_of_the_tables_is_exported():
    have = exported()
    made = open(os.path.join(ROOT, "simgpu/api/simgpu_rows.def")).read()  # of headers: NVML's that have no row by hand
    for table in NAMES:
        text = open(os.path.join(ROOT, "simgpu/api", table)).read() + (made if table == "api_nvml.def" else "")
        rows = re.findall(r"\b(?:STUB|DENY|IMPL|TWIN)\((\w+)", text)
        assert len(rows) > 100
        assert [name for name in rows if name not in have] == []


@pytest.mark.skipif(not os.path.exists(os.path.join(ROOT, ".venv/lib")), reason="no .venv")
def test_driver_names_cover_cuda_h():
    """The real header is the truth for the committed table."""
    include = subprocess.run("ls -d %s/.venv/lib/python3*/site-packages/nvidia/cu13/include" % ROOT, shell=True,
                             capture_output=True, text=True).stdout.split()
    if not include:
        pytest.skip("no CUDA 13 headers")
    text = subprocess.run(["cc", "-E", "-P", "-D__CUDA_API_VERSION_INTERNAL", "-I", include[0], "-include", "cuda.h",
                           "-x", "c", "/dev/null"], capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(", text))
    assert len(names) > 500
    assert sorted(names - exported()) == []


def test_entry_points_by_version():
    lines = ask("""
        f = {}
        def get(name, version, flags=0):
            status = c_int(-1)
            r = L.cuGetProcAddress_v2(name, byref(p), c_int(version), c_uint64(flags), byref(status))
            return r, p.value, status.value
        def addr(name): return ctypes.cast(getattr(L, name), c_void_p).value
        print(get(b"cuMemAlloc", 12000) == (0, addr("cuMemAlloc_v2"), 0))
        print(get(b"cuMemAlloc", 3000) == (0, addr("cuMemAlloc"), 0))
        print(get(b"cuCtxGetDevice", 12080)[1] == addr("cuCtxGetDevice"), get(b"cuCtxGetDevice", 13000)[1] == addr("cuCtxGetDevice_v2"))
        print(get(b"cuMemAllocAsync", 12000)[1] == addr("cuMemAllocAsync"), get(b"cuMemAllocAsync", 12000, 2)[1] == addr("cuMemAllocAsync_ptsz"))
        print(get(b"cuGetProcAddress", 11030)[1] == addr("cuGetProcAddress"), get(b"cuGetProcAddress", 12000)[1] == addr("cuGetProcAddress_v2"))
        print(get(b"cuNoSuchThing", 13000)[0], get(b"cuNoSuchThing", 13000)[2], get(b"cuMemCreate", 9000)[2], get(b"", 0)[0])
        s = c_int(-1)
        print(L.cudaGetDriverEntryPointByVersion(b"cuMemCreate", byref(p), c_int(12000), c_uint64(0), byref(s)), s.value, p.value == addr("cuMemCreate"))
        print(L.cudaGetDriverEntryPointByVersion(b"cuNoSuchThing", byref(p), c_int(12000), c_uint64(0), byref(s)), s.value, p.value)
        """)
    assert lines == ["True", "True", "True True", "True True", "True True", "500 1 2 500", "0 0 True", "0 1 None"]


# ---- errors ----

def test_errors_are_those_of_the_runtime():
    lines = ask("""
        r, p = alloc(1000)
        print(r, L.cudaFree(p), L.cudaFree(p), L.cudaGetLastError(), L.cudaGetLastError())
        print(alloc(0)[1].value, L.cudaFree(None), alloc(1 << 50)[0], L.cudaPeekAtLastError(), L.cudaGetLastError(), L.cudaPeekAtLastError())
        print(L.cudaSetDevice(1), L.cudaSetDevice(-1), L.cudaSetDevice(0))
        print(L.cudaStreamCreateWithFlags(byref(q), 7), L.cudaFreeHost(c_void_p(4096)), L.cudaHostUnregister(c_void_p(4096)))
        L.cudaGetErrorString.restype = L.cudaGetErrorName.restype = c_char_p
        print(L.cudaGetErrorName(2).decode(), L.cudaGetErrorString(2).decode(), L.cudaGetErrorString(0).decode())
        """)
    assert lines == ["0 0 1 1 0", "None 0 2 2 2 0", "101 101 0", "1 1 713", "cudaErrorMemoryAllocation out of memory no error"]


def test_driver_needs_initialisation_and_a_context():
    lines = ask("""
        print(L.cuMemAlloc_v2(byref(p), c_size_t(100)), L.cuDeviceGetCount(byref(i)), L.cuInit(1), L.cuInit(0))
        print(L.cuMemAlloc_v2(byref(p), c_size_t(100)), L.cuDevicePrimaryCtxRetain(byref(q), 0), L.cuCtxSetCurrent(q))
        print(L.cuMemAlloc_v2(byref(p), c_size_t(0)), L.cuMemAlloc_v2(byref(p), c_size_t(100)), L.cuMemFree_v2(p), L.cuMemFree_v2(p))
        """)
    assert lines == ["3 3 1 0", "201 0 0", "1 0 0 1"]


def test_an_unknown_card_is_said_once_and_is_no_device():
    code = CTYPES + "print(L.cudaGetDeviceCount(byref(i)), i.value, L.cudaGetDeviceCount(byref(i)), alloc(10)[0])"
    done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, LD_PRELOAD=SIM, SIMGPU_CARD="h100"),
                          capture_output=True, text=True, timeout=600)
    assert done.stdout.split() == ["100", "0", "100", "100"]
    assert done.stderr.count("\n") == 1 and 'SIMGPU_CARD: unknown card "h100"; did you mean h100-80g? Known are ' in done.stderr


def test_a_primary_context_ends_with_its_last_reference():
    """If the runtime does not use it. It stays current, and calls there say so."""
    lines = ask("""
        def used(): free, total = c_size_t(), c_size_t(); return L.cuMemGetInfo_v2(byref(free), byref(total)) or (total.value - free.value) >> 20
        def take(): return L.cuMemAlloc_v2(byref(p), c_size_t(100 << 20))
        L.cuInit(0); L.cuDevicePrimaryCtxRetain(byref(q), 0); L.cuDevicePrimaryCtxRetain(byref(q), 0); L.cuCtxSetCurrent(q)
        print(take(), used() - 520)
        print(L.cuDevicePrimaryCtxRelease_v2(0), used() - 520, L.cuDevicePrimaryCtxRelease_v2(0), used(), take())
        print(L.cuDevicePrimaryCtxRelease_v2(0), L.cuDevicePrimaryCtxRetain(byref(q), 0), used() - 520)
        L.cudaFree(None); take()
        print(L.cuDevicePrimaryCtxRelease_v2(0), used() - 520)
        """)
    assert lines == ["0 100", "0 100 0 709 709", "201 0 0", "0 100"]


@pytest.mark.parametrize("column,value,words", [
    (13, "700", "the least context is larger than the most"), (12, "100", "the context is not between its least and its most"),
    (14, "99999", "a context takes all memory"), (None, None, None)])
def test_a_row_whose_columns_contradict_each_other_does_not_build(tmp_path, column, value, words):
    core = shutil.copytree(os.path.join(os.path.dirname(BUILD), "simgpu/core"), tmp_path / "core")
    row = ["\"new-60g\"", "\"New\"", 9, 0, 90, 132, 2048, 32, 228, 227, 50, 61440, 520, 480, 620, 1980, 2619, 5120, 3352, 67, 67, 495, 989, 1979, 64, 450]
    if words:
        row[column] = value
    with open(core / "cards.def", "a") as cards:
        cards.write(f"CARD({', '.join(map(str, row))})\n")
    done = subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-fsyntax-only", core / "cards.c"], capture_output=True, text=True)
    assert (done.returncode != 0, bool(words)) in [(True, True), (False, False)], done.stderr
    assert not words or f"new-60g: {words}" in done.stderr


def test_a_forked_child_is_refused_only_after_initialisation():
    lines = ask("""
        def child():
            r, w = os.pipe()
            if not os.fork():
                os.write(w, b"%d %d" % (L.cudaGetDeviceCount(byref(i)), alloc(10)[0])); os._exit(0)
            os.wait()
            return os.read(r, 100).decode()
        print(child()); print(alloc(10)[0]); print(child()); print(alloc(10)[0])
        """)
    assert lines == ["0 0", "0", "3 3", "0"]


# ---- memory ----

@pytest.mark.parametrize("card,gib", [("rtx4090-24g", 24), ("a100-40g", 40), ("a100-80g", 80), ("h100-80g", 80),
                                      ("h200-141g", 141), ("b200-180g", 180), ("mine=3GiB", 3),
                                      ("rtx3090-24g", 24), ("a10-24g", 24), ("a6000-48g", 48), ("l4-24g", 24),
                                      ("l40s-48g", 48), ("rtx5090-32g", 32), ("rtxpro6000-96g", 96),
                                      ("t4-16g", 16), ("v100-16g", 16), ("v100-32g", 32), ("rtx2080ti-11g", 11), ("rtx3060-12g", 12),
                                      ("rtx4060ti-16g", 16), ("rtx4080-16g", 16), ("a30-24g", 24), ("l40-48g", 48), ("rtx6000ada-48g", 48),
                                      ("h20-96g", 96), ("gh200-96g", 96), ("gh200-144g", 144), ("b300-288g", 288)])
def test_cards_hold_what_they_say(card, gib):
    total, context, most = map(int, ask("""
        free(); total, before = b.value, a.value
        n = 0
        while alloc(256 << 20)[0] == 0: n += 1
        print(total); print(total - before); print(n * (256 << 20))
        """, card=card))
    assert 0.91 * gib * GIB < total <= gib * GIB
    assert 250 << 20 <= context < 700 << 20
    assert total - context - (256 << 20) < most <= total - context


@pytest.mark.parametrize("said,mib", [("least", 200), ("most", 470), ("300MiB", 300)])
def test_what_a_context_takes_can_be_chosen(said, mib):
    total, free = map(int, ask("print(free() and b.value); print(a.value)", card="rtx4090-24g", SIMGPU_CONTEXT=said))
    assert total - free == mib << 20


def test_small_allocations_share_pages():
    lines = ask("""
        start = free()
        p = [alloc(n)[1].value for n in (1, 512, 1 << 20)]
        print(start - free(), p[1] - p[0], p[2] - p[1])
        alloc((2 << 20) + 1); print(start - free())
        """)
    assert lines == [str(2 << 20) + " 512 512", str(6 << 20)]


def test_managed_and_pinned_memory_is_real():
    lines = ask("""
        print(L.cudaMallocManaged(byref(p), c_size_t(1 << 20), 1)); ctypes.memset(p, 7, 1 << 20)
        print(L.cudaMallocHost(byref(q), c_size_t(100)), q.value % 4096); ctypes.memset(q, 8, 100)
        L.cudaMemcpy(q, p, c_size_t(100), 4); print(ctypes.string_at(q, 3)[2])
        print(L.cudaFree(p), L.cudaFree(p), L.cudaFreeHost(q), L.cudaFreeHost(q))
        """)
    assert lines == ["0", "0 0", "7", "0 1 0 1"]


def test_managed_memory_gives_way():
    """On a card its pages go to the host where others need the room, and at once if the program prefers them there."""
    lines = ask("""
        class Location(ctypes.Structure): _fields_ = [("type", c_int), ("id", c_int)]
        start = free(); print(L.cudaMallocManaged(byref(p), c_size_t(1 << 30), 1), start - free())
        print(L.cudaMemAdvise(p, c_size_t(1 << 30), 3, Location(1, 0)), start - free())
        print(L.cudaMemAdvise(p, c_size_t(1 << 30), 3, Location(2, 0)), start - free())
        print(L.cudaMallocManaged(byref(q), c_size_t(1 << 30), 1), start - free(), alloc(start - (1 << 29))[0], free() >> 20)
        print(alloc(1 << 30)[0], L.cudaFree(p), L.cudaFree(q), free() >> 20)
        """, SIMGPU_CUDA="13.0")
    assert lines == [f"0 {GIB}", f"0 {GIB}", "0 0", f"0 {GIB} 0 512", "2 0 0 512"]


def test_devices_are_apart():
    lines = ask("""
        L.cudaGetDeviceCount(byref(i)); print(i.value)
        first = free(); L.cudaSetDevice(2); alloc(1 << 30); print(first - free())
        L.cudaSetDevice(0); print(first - free()); L.cudaSetDevice(1); L.cudaGetDevice(byref(i)); print(i.value)
        L.cudaSetDevice(2); L.cudaDeviceReset(); print(first - free())
        """, count=3)
    assert lines == ["3", str(GIB), "0", "1", "0"]


@pytest.mark.parametrize("conf", ["", "expandable_segments:True", "backend:cudaMallocAsync"])
@pytest.mark.matrix
@pytest.mark.forks
def test_torch_sees_the_capacity(programs, conf):
    """Free memory, what PyTorch reserved and the context add up to the whole, and all of it comes back."""
    lines = run_torch(programs, """
        import torch
        torch.zeros(1, device="cuda"); torch.cuda.empty_cache(); torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        x = [torch.empty(3 << 20, dtype=torch.uint8, device="cuda") for i in range(50)]
        print(free - torch.cuda.mem_get_info()[0], torch.cuda.memory_reserved(), torch.cuda.memory_allocated())
        x = None; torch.cuda.synchronize(); torch.cuda.empty_cache(); torch.cuda.synchronize()
        print(free - torch.cuda.mem_get_info()[0])
        try:
            keep = [torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for i in range(100)]
        except torch.OutOfMemoryError:
            keep = None; print("full")
        print(torch.empty(20 << 30, dtype=torch.uint8, device="cuda").numel() >> 30)
        """, PYTORCH_CUDA_ALLOC_CONF=conf, PYTORCH_ALLOC_CONF=conf)
    taken, reserved, allocated = map(int, lines[0].split())
    assert allocated >= 150 << 20
    assert taken == reserved or (conf.startswith("expandable") and abs(taken - reserved) <= 2 << 20)
    assert lines[1:] == ["0", "full", "20"]


# ---- PyTorch ----

@pytest.mark.matrix
@pytest.mark.forks
def test_small_values_come_back_and_results_are_finite(programs):
    lines = run_torch(programs, """
        import torch
        x = torch.tensor([1., 2., 3.]).cuda()
        print(x.cpu().tolist(), x.clone().cpu().tolist(), (x + 1).sum().item(), (x[None] @ x[:, None]).item())
        y = torch.ones(3, 3, device="cuda"); y.copy_(torch.arange(9.).view(3, 3)); print(y[1, 2].item())
        """)
    assert lines == ["[1.0, 2.0, 3.0] [1.0, 2.0, 3.0] 9.0 0.0", "5.0"]


@pytest.mark.matrix
@pytest.mark.forks
def test_graphs_streams_events_and_the_profiler(programs):
    lines = run_torch(programs, """
        import torch
        x = torch.zeros(1000, device="cuda")
        g, s = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        with torch.cuda.stream(s):
            y = x * 2
        torch.cuda.current_stream().wait_stream(s)
        with torch.cuda.graph(g):
            z = torch.rand_like(x) + y
        g.replay(); torch.cuda.synchronize()
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record(); b.record(); torch.cuda.synchronize()
        print(0 < a.elapsed_time(b) < 1000, s.query(), torch.cuda.is_current_stream_capturing())
        from torch.profiler import profile, ProfilerActivity
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
            x * 2
        print(any(e.name == "aten::mul" for e in p.events()))
        """)
    assert lines == ["True True False", "True"]


@pytest.mark.matrix
@pytest.mark.forks
def test_random_numbers_are_those_of_the_card(programs):
    """What PyTorch draws on NVIDIA's cards with seed 0, as many have printed it; of each kind, what it may be; in a graph too."""
    lines = run_torch(programs, """
        import torch
        def plain(t): return [round(x, 4) for x in t.flatten().tolist()]
        torch.manual_seed(0)
        print(plain(torch.rand(8, device="cuda")), plain(torch.rand(3, device="cuda")))
        torch.manual_seed(0)
        print(plain(torch.randn(2, 8, device="cuda")))
        draw = lambda: torch.rand(4, device="cuda")
        whole, order = torch.randint(3, 9, (999,), device="cuda"), torch.randperm(999, device="cuda")
        waits, flags = torch.empty(999, device="cuda").exponential_(2), torch.empty(999, device="cuda").bernoulli_(0.25)
        spread = torch.empty(999, device="cuda", dtype=torch.half).uniform_(2, 4)
        print(whole.unique().tolist(), sorted(order.tolist()) == list(range(999)) != order.tolist(), 0.45 < waits.mean().item() < 0.55,
              200 < int(flags.sum()) < 300, 2.9 < spread.float().mean().item() < 3.1, torch.multinomial(torch.ones(50, device="cuda"), 50).unique().numel())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph): x = draw()
        torch.manual_seed(7); graph.replay(); first = x.tolist(); graph.replay(); second = x.tolist()
        torch.manual_seed(7); print(draw().tolist() == first != second == draw().tolist())
        """)
    assert lines == [
        "[0.399, 0.5167, 0.0249, 0.9401, 0.9459, 0.7967, 0.415, 0.8203] [0.9722, 0.791, 0.469]",
        "[-0.9247, -0.4253, -2.6438, 0.1452, -0.1209, -0.5797, -0.6229, -0.3284,"
        " -1.0745, -0.3631, -1.6711, 2.2655, 0.3117, -0.1842, 1.2866, 1.182]",
        "[3, 4, 5, 6, 7, 8] True True True True 50", "True"]


@pytest.mark.matrix
@pytest.mark.forks
def test_a_graph_does_again_what_was_recorded(programs):
    """Whenever it is launched, with what its tensors hold then; what is not computed is forgotten again."""
    lines = run_torch(programs, """
        import torch
        def steps(device):
            x, y, z = (torch.zeros(4, device=device) for _ in range(3))
            n, w = torch.zeros((), dtype=torch.long, device=device), torch.ones(4, 4, device=device)
            host = torch.zeros(4, pin_memory=device == "cuda")
            found = {"product": w @ w}  # on a device it needs its library first
            def body():
                x.add_(1); n.add_(2)
                z.copy_(x * 2)
                y.zero_(); y.add_(torch.cat([z[:2], z[2:]]))
                found["large"], found["sums"] = (y > 3).sum(), y.cumsum(0)
                host.copy_(y, non_blocking=True)
                found["product"] = w @ w
            graph = torch.cuda.CUDAGraph() if device == "cuda" else None
            if graph:
                with torch.cuda.graph(graph): body()
            for i in range(3):
                graph.replay() if graph else body()
                if graph: torch.cuda.synchronize()
                yield [v.tolist() for v in (x, y, z, n, host, found["large"], found["sums"])]
                if device == "cuda":
                    assert found["product"].sum().item() == 0
                    found["product"].fill_(7)
                n.fill_(10 * i)
        print(list(steps("cpu")) == list(steps("cuda")))
        """)
    assert lines == ["True"]


@pytest.mark.matrix
@pytest.mark.forks
def test_properties_have_the_layout_that_this_torch_expects(programs):
    """Fields from the start, the middle and the end of a structure that differs between CUDA 12 and 13."""
    lines = run_torch(programs, """
        import torch
        p = torch.cuda.get_device_properties(0)
        print(p.name, p.major, p.minor, p.multi_processor_count, p.total_memory == torch.cuda.mem_get_info()[1])
        print(p.warp_size, p.regs_per_multiprocessor, p.max_threads_per_multi_processor, p.L2_cache_size >> 20)
        print(getattr(p, "shared_memory_per_block_optin", 166912), p.is_integrated, p.is_multi_gpu_board)
        """, card="a100-80g")
    assert lines == ["NVIDIA A100-SXM4-80GB 8 0 108 True", "32 65536 2048 40", "166912 0 0"]


def test_memory_is_shared_between_processes():
    lines = ask("""
        import subprocess, sys
        class H(ctypes.Structure): _fields_ = [("b", ctypes.c_char * 64)]
        h = H()
        if len(sys.argv) > 1:
            ctypes.memmove(byref(h), bytes.fromhex(sys.argv[1]), 64); before = free()
            r = L.cudaIpcOpenMemHandle(byref(p), h, 1)
            print(r, before - free(), L.cudaMemset(p, 1, c_size_t(1 << 20)), L.cudaIpcCloseMemHandle(p), L.cudaIpcCloseMemHandle(p))
        else:
            p = alloc(1 << 20)[1]
            print(L.cudaIpcGetMemHandle(byref(h), p), L.cudaIpcOpenMemHandle(byref(q), h, 1), flush=True)
            subprocess.run([sys.executable, "-c", os.environ["SELF"], bytes(h).hex()], check=True)
        """, SELF="")
    assert lines == ["0 201", "0 0 0 0 1"]


@pytest.mark.forks
def test_memory_of_kernels_and_graphs(programs):
    """The first kernel takes code and stack (91 to 95 MiB on an H100), PyTorch's first stream, which is of a pool of 128, 70 (docs/gpu-results.md),
    graphs 10 KiB a node, as a maintainer of NVIDIA/cccl says (pull request 3768)."""
    lines = run_torch(programs, """
        import torch
        def used(): free, total = torch.cuda.mem_get_info(); return (total - free - torch.cuda.memory_reserved()) / 2**20
        x = torch.empty(1 << 20, device="cuda"); before = used()
        x.add_(1); first = used(); x.add_(1); print(first - before, used() - first)
        torch.cuda.Stream(); print(used() - first); first = used()
        import ctypes
        lib, stream = ctypes.CDLL(None), ctypes.c_void_p()
        for _ in range(500): lib.cudaStreamCreate(ctypes.byref(stream)); lib.cudaStreamDestroy(stream)
        print(used() - first); first = used()
        graphs = []
        for i in range(20):
            graphs.append(torch.cuda.CUDAGraph())
            with torch.cuda.graph(graphs[-1]):
                for _ in range(200): x.add_(1)
            graphs[-1].replay()
        print(used() - first)
        for g in graphs: g.reset()
        print(used() - first)
        """)
    (first, more), (streams,), (again,), (graphs,), (left,) = ([float(n) for n in line.split()] for line in lines)
    assert 91 <= first <= 95 and more == 0 and streams == 70 and again <= 2
    assert 20 * 200 * 10 / 1024 <= graphs <= 20 * 200 * 10 / 1024 + 4 and left == 0


# ---- NVML ----

def test_nvml_agrees_with_the_runtime():
    lines = run("""
        import ctypes, os, torch
        from ctypes import byref
        N = ctypes.CDLL("libnvidia-ml.so.1")
        n, h, m = ctypes.c_uint(), ctypes.c_void_p(), (ctypes.c_ulonglong * 3)()
        print(N.nvmlDeviceGetCount_v2(byref(n)), N.nvmlInit_v2(), N.nvmlDeviceGetCount_v2(byref(n)), n.value)
        print(N.nvmlDeviceGetHandleByIndex_v2(1, byref(h)), N.nvmlDeviceGetHandleByIndex_v2(2, byref(h)))
        N.nvmlDeviceGetMemoryInfo(h, m); print(m[2])
        torch.zeros(100 << 20, dtype=torch.uint8, device="cuda:1")
        N.nvmlDeviceGetMemoryInfo(h, m); print((m[1], m[0]) == torch.cuda.mem_get_info(1), m[0] == m[1] + m[2])
        p = (ctypes.c_ulonglong * 8)(); n.value = 2
        print(N.nvmlDeviceGetComputeRunningProcesses_v3(h, byref(n), p), n.value, p[0] % 2**32 == os.getpid(), p[1] == m[2])
        """, count=2)
    assert lines == ["1 0 0 2", "0 2", "0", "True True", "0 1 True True"]


@pytest.mark.parametrize("card, pcie, nvlink", [("h100-80g", 0, 0), ("rtx4090-24g", 1, 5)])
def test_nvml_says_how_devices_are_joined(card, pcie, nvlink):
    lines = run("""
        import ctypes
        from ctypes import byref
        N = ctypes.CDLL("libnvidia-ml.so.1"); N.nvmlInit_v2()
        a, b, s, f = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int(-1), (ctypes.c_ubyte * 64)(*[255] * 64)
        N.nvmlDeviceGetHandleByIndex_v2(0, byref(a)); N.nvmlDeviceGetHandleByIndex_v2(1, byref(b))
        print([(N.nvmlDeviceGetP2PStatus(a, b, what, byref(s)), s.value) for what in (0, 1, 2)], N.nvmlDeviceGetP2PStatus(a, None, 0, byref(s)))
        ctypes.cast(f, ctypes.POINTER(ctypes.c_uint))[0] = 36 | 2 << 24  # the second version of the structure
        print(N.nvmlDeviceGetGpuFabricInfoV(a, f), f[28], f[36])
        ctypes.cast(f, ctypes.POINTER(ctypes.c_uint))[0] = 60 | 9 << 24
        print(N.nvmlDeviceGetGpuFabricInfoV(a, f))
        """, card=card, count=2)
    assert lines == [f"[(0, {pcie}), (0, {pcie}), (0, {nvlink})] 2", "0 0 255", "25"]


@pytest.mark.parametrize("card,can", [("rtx4090-24g", 0), ("rtx6000ada-48g", 1), ("rtxpro6000-96g", 1), ("h100-80g", 1)])
def test_peers_of_geforce_cards_are_refused(card, can):
    """By the runtime and NVML alike; workstation cards named RTX have peers."""
    assert ask("""
        N, h, g = ctypes.CDLL(os.environ["LD_PRELOAD"]), c_void_p(), c_void_p()
        N.nvmlInit_v2(); N.nvmlDeviceGetHandleByIndex_v2(0, byref(h)); N.nvmlDeviceGetHandleByIndex_v2(1, byref(g))
        print(L.cudaDeviceCanAccessPeer(byref(i), 0, 1), i.value, N.nvmlDeviceGetP2PStatus(h, g, 0, byref(i)), int(i.value == 0))
        """, card=card, count=2) == [f"0 {can} 0 {can}"]


def test_visible_devices():
    lines = run("""
        import ctypes, torch
        print(torch.cuda.device_count(), torch.cuda.get_device_properties(0).pci_bus_id, torch.cuda.get_device_properties(1).pci_bus_id)
        N, h, m = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), (ctypes.c_ulonglong * 3)()
        torch.zeros(1, device="cuda:0"); N.nvmlInit_v2()
        for i in range(4): N.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(h)); N.nvmlDeviceGetMemoryInfo(h, m); print(m[2] > 0, end=" ")
        print()
        """, count=4, CUDA_VISIBLE_DEVICES="2,0,9,1")
    assert lines == ["2 18 16", "False False True False "]


# ---- CUPTI ----

def test_cupti_has_one_subscriber():
    lines = ask("""
        L.cuptiGetVersion(byref(i)); print(i.value > 0)
        print(L.cuptiSubscribe(byref(p), None, None), L.cuptiSubscribe(byref(q), None, None), L.cuptiUnsubscribe(p), L.cuptiSubscribe(byref(q), None, None))
        """)
    assert lines == ["True", "0 39 0 0"]


def test_cupti_tells_of_allocating_calls():
    """Call ids are CUPTI's (cudaMalloc 20, cudaFree 22, cuMemAlloc_v2 243, cuMemFree_v2 245): the runtime's call is
    told with the driver's inside it, and the arguments and the result are those of the call."""
    lines = ask("""
        class Data(ctypes.Structure):
            _fields_ = [("site", c_int), ("name", c_char_p), ("params", c_void_p), ("result", ctypes.POINTER(c_int)), ("symbol", c_char_p),
                        ("context", c_void_p), ("uid", ctypes.c_uint32), ("data", c_void_p), ("id", ctypes.c_uint32)]
        told = []
        @ctypes.CFUNCTYPE(None, c_void_p, c_int, ctypes.c_uint32, ctypes.POINTER(Data))
        def callback(user, domain, cbid, d):
            d = d[0]; words = ctypes.cast(d.params, ctypes.POINTER(c_uint64))
            told.append((domain, cbid, d.site, d.name.decode(), words[1] if cbid in (20, 243) else words[0], d.result[0] if d.site else None))
        r, early = alloc(100)
        L.cuptiSubscribe(byref(q), callback, None)
        print(told, alloc(100)[0], told)
        for domain, cbid in (2, 20), (2, 22), (1, 243), (1, 245): print(L.cuptiEnableCallback(1, q, domain, cbid), end=" ")
        r, p = alloc(5000); r = L.cudaFree(p); r = alloc(1 << 50)
        print([t[:4] for t in told] == [(2, 20, 0, "cudaMalloc"), (1, 243, 0, "cuMemAlloc_v2"), (1, 243, 1, "cuMemAlloc_v2"), (2, 20, 1, "cudaMalloc"),
            (2, 22, 0, "cudaFree"), (1, 245, 0, "cuMemFree_v2"), (1, 245, 1, "cuMemFree_v2"), (2, 22, 1, "cudaFree")] + [t[:4] for t in told[:4]])
        print([t[4] for t in told] == 4 * [5000] + 4 * [p.value] + 4 * [1 << 50], [t[5] for t in told])
        L.cuptiUnsubscribe(q); told.clear(); alloc(10); print(told)
        """)
    assert lines == ["[] 0 []", "0 0 0 0 True", "True [None, None, 0, 0, None, None, 0, 0, None, None, 2, 2]", "[]"]


# ---- memory that other programs hold ----

def test_taken():
    """The card is as large as ever, less of it is free, and no allocation gets at the rest."""
    lines = ask("""
    alloc(1 << 20); n = free()
    print(b.value, n)
    print(alloc(n + 1)[0], alloc(n // 2)[0], free() < n // 2 + 1)
    """, card="mycard=8GiB", SIMGPU_TAKEN="5GiB")
    whole = ask("""
    alloc(1 << 20); n = free()
    print(b.value, n)
    """, card="mycard=8GiB")
    (total, left), (same_total, all_left) = [map(int, x[0].split()) for x in (lines, whole)]
    assert total == same_total == 8 * GIB and all_left - left == 5 * GIB
    assert lines[1] == "2 0 True"


@pytest.mark.parametrize("size", ["much", "9GiB"])
def test_taken_cannot_be(size):
    lines = ask("print(L.cudaGetDeviceCount(byref(i)), i.value)", card="mycard=8GiB", SIMGPU_TAKEN=size)
    assert lines[0].split()[0] == "100"
