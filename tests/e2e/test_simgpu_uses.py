# SPDX-License-Identifier: Apache-2.0
"""What launches, copies and fills name on the simulated device: the memory that PyTorch's operators use, each in one call of the driver."""
import glob
import json
import subprocess
import sysconfig

import pytest

from conftest import BUILD, REAL, ROOT, with_more

HEADERS = glob.glob(f"{sysconfig.get_paths()['purelib']}/nvidia/cu13/include")

pytestmark = pytest.mark.skipif(REAL or not (BUILD / "libsimgpu.so").exists() or not HEADERS, reason="for the simulated device")


@pytest.fixture(scope="module")
def preload(tmp_path_factory):
    library = tmp_path_factory.mktemp("launches") / "launches.so"
    include = [f for folder in HEADERS for f in ("-isystem", folder)]
    subprocess.run(["gcc", "-w", "-O2", "-shared", "-fPIC", *include, "-o", library, ROOT / "tests/e2e/launches.c", "-ldl", "-lpthread"], check=True)
    return library


def run(programs, preload, *args):
    return programs(*args, traced=False, LD_PRELOAD=f"{preload}:{BUILD / 'libsimgpu.so'}", timeout=300)


@pytest.mark.parametrize("what", with_more(["gpt2 resnet mixtral", "fft sparse layers products", "linalg", "lstm unet experts multihead flash convnext t5"], ["gpt2 resnet mixtral", "linalg", "lstm unet experts multihead flash convnext t5"]))
def test_launches_name_what_operators_use(programs, preload, what):
    done = run(programs, preload, "uses.py", "uses.json", *what.split())
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    for name, said in json.loads((programs.folder / "uses.json").read_text()).items():
        print(name, said)
        assert said["launches"] > 20 and said["tensors"] > 25, name
        assert said["named"] == said["tensors"], (name, said["missing"])
        assert said["silent"] == said["without layout"] == {}, name


CALLS = """
import ctypes, torch
rt, drv, mine = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
mine.launches_take.restype = ctypes.c_char_p
a, b, host = torch.zeros(4096, device="cuda"), torch.ones(4096, device="cuda"), torch.zeros(4096).pin_memory()
A, B, H, n = a.data_ptr(), b.data_ptr(), host.data_ptr(), 4096
P, S = ctypes.c_void_p, ctypes.c_size_t
class Pitched(ctypes.Structure): _fields_ = [("ptr", P), ("pitch", S), ("x", S), ("y", S)]
class Extent(ctypes.Structure): _fields_ = [("w", S), ("h", S), ("d", S)]
class Location(ctypes.Structure): _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]
class Copy3D(ctypes.Structure):
    _fields_ = [("sa", P), ("sp", Extent), ("s", Pitched), ("da", P), ("dp", Extent), ("d", Pitched), ("e", Extent), ("kind", ctypes.c_int)]
box = Copy3D(s=Pitched(B, 64, 64, 8), d=Pitched(A, 64, 64, 8), e=Extent(32, 4, 2), kind=4)
calls = {
    "cuMemcpy": lambda: rt.cudaMemcpy(P(A), P(B), S(n), 4), "cuMemcpyDtoD": lambda: rt.cudaMemcpy(P(A), P(B), S(n), 3),
    "cuMemcpyHtoD": lambda: rt.cudaMemcpy(P(A), P(H), S(n), 1), "cuMemcpyDtoH": lambda: rt.cudaMemcpy(P(H), P(A), S(n), 2),
    "cuMemcpyAsync": lambda: rt.cudaMemcpyAsync(P(A), P(B), S(n), 4, None), "cuMemcpyHtoDAsync": lambda: rt.cudaMemcpyAsync(P(A), P(H), S(n), 1, None),
    "cuMemcpyDtoHAsync": lambda: rt.cudaMemcpyAsync(P(H), P(A), S(n), 2, None), "cuMemcpyDtoDAsync": lambda: rt.cudaMemcpyAsync(P(A), P(B), S(n), 3, None),
    "cuMemcpyPeer": lambda: rt.cudaMemcpyPeer(P(A), 0, P(B), 0, S(n)), "cuMemcpyPeerAsync": lambda: rt.cudaMemcpyPeerAsync(P(A), 0, P(B), 0, S(n), None),
    "cuMemcpy2DUnaligned": lambda: rt.cudaMemcpy2D(P(A), S(64), P(B), S(128), S(64), S(8), 3),
    "cuMemcpy2DAsync": lambda: rt.cudaMemcpy2DAsync(P(A), S(64), P(B), S(128), S(64), S(8), 3, None),
    "cuMemcpy3D": lambda: rt.cudaMemcpy3D(ctypes.byref(box)), "cuMemcpy3DAsync": lambda: rt.cudaMemcpy3DAsync(ctypes.byref(box), None),
    "cuMemcpyBatchAsync": lambda: rt.cudaMemcpyBatchAsync((P * 1)(A), (P * 1)(B), (S * 1)(n), S(1), None, None, S(0), None),
    "cuMemPrefetchAsync": lambda: rt.cudaMemPrefetchAsync(P(A), S(n), Location(1, 0), 0, None),
    "cuMemsetD8": lambda: rt.cudaMemset(P(A), 1, S(n)), "cuMemsetD8Async": lambda: rt.cudaMemsetAsync(P(A), 1, S(n), None),
    "cuMemsetD2D8": lambda: rt.cudaMemset2D(P(A), S(64), 1, S(32), S(8)),
    "cuMemsetD2D8Async": lambda: rt.cudaMemset2DAsync(P(A), S(64), 1, S(32), S(8), None),
    "cuLaunchKernel": lambda: (a.add_(b), 0)[1],
}
for name, call in calls.items():
    mine.launches_take()
    result, lines = call(), mine.launches_take().decode().split("\\n")[:-1]
    print(name, result, *(line.split()[0] for line in lines), all("%x" % A in line.split() for line in lines))
a.fill_(0)
b.copy_(torch.arange(4096.0))
rt.cudaMemcpy3D(ctypes.byref(box))
print([int(a[i]) for i in (0, 7, 8, 16, 48, 63, 64, 128, 135, 176, 183, 184)])
"""


def test_each_call_of_the_runtime_is_one_of_the_driver(programs, preload):
    done = run(programs, preload, "-c", CALLS)
    assert done.returncode == 0, done.stderr[-3000:]
    *lines, values = done.stdout.splitlines()
    assert len(lines) == 21
    for line in lines:
        name = line.split()[0]
        assert line == f"{name} 0 {name} True"
    assert values == "[0, 7, 0, 16, 48, 0, 0, 128, 135, 176, 183, 0]"


GRAPHS = """
import ctypes, torch
drv, mine = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
mine.launches_take.restype = ctypes.c_char_p
P, S, byref = ctypes.c_void_p, ctypes.c_size_t, ctypes.byref
class Kernel(ctypes.Structure): _fields_ = [("f", P), ("sizes", ctypes.c_uint * 7), ("params", ctypes.POINTER(P)), ("extra", P), ("kernel", P), ("ctx", P)]
class Words(ctypes.Structure): _fields_ = [("w", S * 40)]
a, b = torch.arange(8.0, device="cuda"), torch.ones(8, device="cuda")
m = torch.ones(8, 8, device="cuda")
m @ m
out, other = torch.empty(8, device="cuda"), torch.zeros(8, device="cuda")
g = torch.cuda.CUDAGraph(keep_graph=True)
with torch.cuda.graph(g):
    c = a + b
    d = m @ m
    out.copy_(c)
raw, n = P(g.raw_cuda_graph()), S()
drv.cuGraphGetNodes(raw, None, byref(n))
nodes = (P * n.value)()
drv.cuGraphGetNodes(raw, nodes, byref(n))
names = {a.data_ptr(): "a", b.data_ptr(): "b", c.data_ptr(): "c", d.data_ptr(): "d", m.data_ptr(): "m", out.data_ptr(): "out"}
def read(node):
    kind, k, offset, size = ctypes.c_int(), Kernel(), S(), S()
    drv.cuGraphNodeGetType(P(node), byref(kind))
    if kind.value == 1:
        w = Words()
        assert drv.cuGraphMemcpyNodeGetParams(P(node), byref(w)) == 0
        return 1, [names[v] for v in dict.fromkeys(w.w) if v in names], w
    assert drv.cuGraphKernelNodeGetParams_v2(P(node), byref(k)) == 0
    found, i = [], 0
    while drv.cuFuncGetParamInfo(P(k.f), S(i), byref(offset), byref(size)) == 0:
        data, i = ctypes.string_at(k.params[i], size.value), i + 1
        found += [int.from_bytes(data[j:j + 8], "little") for j in range(0, size.value - 7, 8)]
    return 0, sorted(names[v] for v in found if v in names), k
for node in nodes:
    print(*read(node)[:2])
mine.launches_take()
g.replay()
print(out.tolist(), mine.launches_take().decode().split()[0])
kind, _, words = read(nodes[2])
words.w[words.w[:].index(c.data_ptr())] = b.data_ptr()
words.w[words.w[:].index(c.data_ptr())] = b.data_ptr()
exe = P()
assert drv.cuGraphInstantiateWithFlags(byref(exe), raw, ctypes.c_ulonglong(0)) == 0
assert drv.cuGraphExecMemcpyNodeSetParams(exe, P(nodes[2]), byref(words), None) == 0
drv.cuGraphLaunch(exe, None)
print(out.tolist(), read(nodes[2])[1])
added, graph = P(), P()
drv.cuGraphCreate(byref(graph), 0)
assert drv.cuGraphAddKernelNode_v2(byref(added), graph, None, S(0), byref(read(nodes[0])[2])) == 0
print(*read(added.value)[:2])
assert drv.cuGraphExecUpdate_v2(exe, graph, byref(Words())) == 910
assert drv.cuGraphExecUpdate_v2(exe, raw, byref(Words())) == 0
drv.cuGraphLaunch(exe, None)
print(out.tolist())
"""


def test_nodes_of_graphs_say_and_do_what_they_were_given(programs, preload):
    done = run(programs, preload, "-c", GRAPHS)
    assert done.returncode == 0, done.stderr[-3000:]
    counted = [float(i) for i in range(1, 9)]
    assert done.stdout.splitlines() == ["0 ['a', 'b', 'c']", "0 ['d', 'm', 'm']", "1 ['c', 'out']", f"{counted} cuGraphLaunch",
                                        f"{[1.0] * 8} ['c', 'out']", "0 ['a', 'b', 'c']", str(counted)]
