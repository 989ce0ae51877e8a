# SPDX-License-Identifier: Apache-2.0
"""Which kernels, copies and graphs use which memory: what PyTorch's own dispatcher says that operators are given (tests/uses), and what a
program that makes each call says of its ranges."""
import json
import os
import subprocess
import sys

import pytest
import toy
from conftest import REAL

sys.path.insert(0, os.path.join(toy.ROOT, "tests/uses"))
import uses_judge as judge  # noqa: E402

# The main shapes of training, small: convolutions, batch norm, attention, embedding, gradients that are added to, foreach and fused optimizers.
NETWORK = """
import torch
from torch import nn

torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64)
        self.words, self.attend = nn.Embedding(500, 64), nn.MultiheadAttention(64, 4, batch_first=True)
        self.ln, self.head = nn.LayerNorm(64), nn.Linear(64, 10)
    def forward(self, images, tokens):
        x = torch.relu(self.norm(self.conv(images))).flatten(2).mean(2)
        y = self.words(tokens)
        y = self.ln(y + self.attend(y, y, y, need_weights=False)[0])
        return self.head(x + y.mean(1))

net = Net().cuda()
for optimizer in (torch.optim.AdamW(net.parameters()), torch.optim.SGD(net.parameters(), 0.1, momentum=0.9),
                  torch.optim.Adam(net.parameters(), fused=True)):
    for _ in range(2):
        out = net(torch.randn(8, 3, 64, 64, device="cuda"), torch.randint(0, 500, (8, 64), device="cuda"))
        loss = nn.functional.cross_entropy(out, torch.randint(0, 10, (8,), device="cuda"))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.mark.real
def test_what_operators_are_given_is_named(tmp_path):
    program = tmp_path / "network.py"
    program.write_text(NETWORK)
    total, missed, _ = judge.judge(*judge.record([str(program)], tmp_path, None if REAL else "h100-80g"))
    assert total["unread"] == 0 and total["launches"] > 500 and total["tensors"] > 1000, total
    assert total["named"] >= 0.999 * total["tensors"], missed
    assert total["last uses as said"] >= 0.999 * total["last uses"], missed
    assert total["no block"] <= 0.02 * total["places"], total


@pytest.mark.more
@pytest.mark.parametrize("case", ["adamw", "amp", "checkpoint", "compile", "diffusion", "lstm", "moe", "graph_network", "detection", "generate"])
def test_cases(tmp_path, case):
    os.environ["TRUTH"] = str(tmp_path / "truth")
    total, missed, _ = judge.judge(*judge.record([f"{toy.ROOT}/tests/classes/case_{case}.py"], tmp_path, "h100-80g"))
    assert total["named"] >= 0.999 * total["tensors"], missed


CALLS = """
import ctypes, json, sys
driver = ctypes.CDLL("libcuda.so.1")
N = 1 << 22
said = []

def ok(rc):
    assert rc == 0, rc

def call(name, *arguments, touches):
    ok(getattr(driver, name)(*arguments))
    said.extend([name, what, address, size] for what, address, size in touches)

ok(driver.cuInit(0))
context = ctypes.c_void_p()
ok(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(driver.cuCtxSetCurrent(context))
a, b = ctypes.c_uint64(), ctypes.c_uint64()
ok(driver.cuMemAlloc_v2(ctypes.byref(a), ctypes.c_size_t(N)))
ok(driver.cuMemAlloc_v2(ctypes.byref(b), ctypes.c_size_t(N)))
x, y, host, n, no = a.value, b.value + 4096, ctypes.create_string_buffer(8192), ctypes.c_size_t(4096), ctypes.c_void_p()
X, Y = ctypes.c_uint64(x), ctypes.c_uint64(y)
call("cuMemsetD8_v2", X, 1, n, touches=[("set", x, 4096)])
call("cuMemsetD16_v2", X, 1, n, touches=[("set", x, 8192)])
call("cuMemsetD32Async", X, 1, n, no, touches=[("set", x, 16384)])
call("cuMemsetD2D8_v2", X, ctypes.c_size_t(1024), 1, ctypes.c_size_t(100), ctypes.c_size_t(3), touches=[("set", x, 2148)])
call("cuMemcpyDtoD_v2", Y, X, n, touches=[("source", x, 4096), ("target", y, 4096)])
call("cuMemcpyDtoDAsync_v2", Y, X, n, no, touches=[("source", x, 4096), ("target", y, 4096)])
call("cuMemcpyHtoD_v2", Y, host, n, touches=[("target", y, 4096)])
call("cuMemcpyDtoHAsync_v2", host, X, n, no, touches=[("source", x, 4096)])
call("cuMemcpy", Y, X, n, touches=[("source", x, 4096), ("target", y, 4096)])
call("cuMemcpyPeer", Y, context, X, context, n, touches=[("source", x, 4096), ("target", y, 4096)])

class Side(ctypes.Structure):
    _fields_ = [("x", ctypes.c_size_t), ("y", ctypes.c_size_t), ("type", ctypes.c_int), ("host", ctypes.c_void_p), ("device", ctypes.c_uint64),
                ("array", ctypes.c_void_p), ("pitch", ctypes.c_size_t)]

class Copy(ctypes.Structure):
    _fields_ = [("source", Side), ("target", Side), ("width", ctypes.c_size_t), ("height", ctypes.c_size_t)]

rows = Copy(Side(16, 2, 2, None, x, None, 1024), Side(0, 0, 2, None, y, None, 512), 100, 3)
call("cuMemcpy2D_v2", ctypes.byref(rows), touches=[("source", x + 2064, 2148), ("target", y, 1124)])
json.dump(said, open(sys.argv[1], "w"))
"""


def record(tmp_path, program, **env):
    (tmp_path / "program.py").write_text(program)
    recording = tmp_path / "run.gmt"
    full = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_"))}
    subprocess.run([toy.TOOL, "run", "-q", "--sim", "h100-80g", "-o", recording, "--", sys.executable, tmp_path / "program.py", tmp_path / "said"],
                   check=True, env=full | env, timeout=600)
    return toy.dump(recording)


def test_copies_and_sets(tmp_path):
    events = record(tmp_path, CALLS)
    found = [[e["by"], e["what"], e["addr"], e["size"]] for e in events if e["kind"] == "transfer"]
    assert found == json.loads((tmp_path / "said").read_text())


def test_uses_that_are_switched_off(tmp_path):
    events = record(tmp_path, CALLS, GPUMEMTRACE_USES="off")
    assert "mem_alloc" in {e["kind"] for e in events} and not {e["kind"] for e in events} & {"use", "transfer", "graph_use", "graph_launch"}


GRAPH = """
import json, sys, torch
x = torch.randn(2048, 2048, device="cuda")
y = torch.zeros(2048, 2048, device="cuda")
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y.copy_(x)
    y.mul_(2)
for _ in range(3):
    graph.replay()
torch.cuda.synchronize()
json.dump([x.data_ptr(), y.data_ptr()], open(sys.argv[1], "w"))
"""


def test_a_graph_uses_what_its_nodes_use(tmp_path):
    """At each launch, and not when it is captured."""
    events = record(tmp_path, GRAPH)
    x, y = json.loads((tmp_path / "said").read_text())
    begins = next(i for i, e in enumerate(events) if e["kind"] == "graph_begin")
    ends = next(i for i, e in enumerate(events) if e["kind"] == "graph_end")
    assert not [e for e in events[begins:ends] if e["kind"] in ("use", "transfer")]
    launches = [e for e in events if e["kind"] == "graph_launch"]
    assert len(launches) == 3 and len({e["addr"] for e in launches}) == 1
    places = {p for e in events if e["kind"] == "graph_use" and e["stream"] == launches[0]["addr"] for p in e["places"]}
    assert {x, y} <= places
    live = json.loads(subprocess.run([toy.TOOL, "live", tmp_path / "run.gmt", "--at", "peak", "--json"], capture_output=True, text=True, check=True).stdout)
    uses = {b["addr"]: b["last_use_ns"] or b["next_use_ns"] for b in live["blocks"]}
    assert uses[x] and uses[y]


# Two kernels, in code as each of its ways comes into a program: a pointer, 40 bytes with a pointer at 8, a number; and one pointer.
IMAGES = """
import ctypes, json, struct, sys
driver = ctypes.CDLL("libcuda.so.1")
N = 1 << 22

def ok(rc):
    assert rc == 0, rc

def elf(*kernels):
    "A cubin with nothing but what it says of its kernels' parameters: (name, ((offset, size), ...))."
    body, names, sections = b"", b"\\0", []
    for name, parameters in kernels:
        said = b"\\x03\\x1b\\xff\\0" + b"".join(b"\\x04\\x17\\x0c\\0" + struct.pack("<III", 0, i | at << 16, size << 18)
                                           for i, (at, size) in reversed(list(enumerate(parameters))))
        sections.append((len(names), 64 + len(body), len(said)))
        body, names = body + said, names + b".nv.info." + name + b"\\0"
    sections.insert(0, (0, 64 + len(body), len(names)))
    body += names
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\\x7fELF\\2\\1\\1", 2, 190, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(sections), 0)
    return head + body + b"".join(struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, at, size, 0, 0, 1, 0) for name, at, size in sections)

def packed(whole):
    "In LZ4's block format, all of it as it is."
    more = len(whole) - 15
    return b"\\xf0" + b"\\xff" * (more // 255) + bytes([more % 255]) + whole

def fat(*images):
    out = b""
    for code, architecture, squeeze in images:
        stored = packed(code) if squeeze else code
        out += struct.pack("<HHIQIIHHIQQQQ", 2, 1, 64, len(stored), len(stored) if squeeze else 0, 0, 0, 0, architecture, 0, 0, 0,
                           len(code) if squeeze else 0) + stored
    return struct.pack("<IHHQ", 0xba55ed50, 1, 16, len(out)) + out

class Wrapper(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_uint32), ("version", ctypes.c_uint32), ("data", ctypes.c_void_p), ("file", ctypes.c_void_p)]

CODE = elf((b"first", ((0, 8), (8, 40), (48, 4))), (b"second", ((0, 8),)))
kept = ctypes.create_string_buffer(fat((elf((b"other", ((0, 8),))), 80, False), (CODE, 90, True)))
wrapper = Wrapper(0x466243b1, 1, ctypes.addressof(kept), None)
with open(sys.argv[1] + ".cubin", "wb") as file:
    file.write(CODE)

def module(name, code):
    handle = ctypes.c_void_p()
    ok(getattr(driver, name)(ctypes.byref(handle), code, *([0, None, None] if name.endswith("Ex") else [])))
    return handle

def library(name, code):
    handle = ctypes.c_void_p()
    ok(getattr(driver, name)(ctypes.byref(handle), code, None, None, 0, None, None, 0))
    return handle

def gone(load, name, code):
    "The program's own copy is overwritten behind the call."
    copy = ctypes.create_string_buffer(code)
    handle = load(name, copy)
    ctypes.memset(copy, 0xff, len(code))
    return handle

ok(driver.cuInit(0))
context = ctypes.c_void_p()
ok(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(driver.cuCtxSetCurrent(context))
a = ctypes.c_uint64()
ok(driver.cuMemAlloc_v2(ctypes.byref(a), ctypes.c_size_t(N)))
said = []

def launch(function, name, *values):
    words = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
    ok(driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, words, None))

def use(get, owner, convert=False):
    for name in (b"first", b"second", b"missing"):
        function, place = ctypes.c_void_p(), a.value + 4096 * (len(said) + 1)
        ok(get(ctypes.byref(function), owner, name))
        if convert:
            kernel, function = function, ctypes.c_void_p()
            ok(driver.cuKernelGetFunction(ctypes.byref(function), kernel))
        if name == b"first":
            launch(function, name, ctypes.c_uint64(place), struct_of(place + 2048), ctypes.c_uint32(7))
            said.append([name.decode(), [place, place + 2048]])
        else:
            launch(function, name, ctypes.c_uint64(place))
            said.append([name.decode(), [place]] if name == b"second" else ["", []])

def struct_of(address):
    return (ctypes.c_uint64 * 5)(3, address, 0, 0, 5)

use(driver.cuModuleGetFunction, gone(module, "cuModuleLoadData", CODE))
use(driver.cuModuleGetFunction, gone(module, "cuModuleLoadDataEx", CODE))
use(driver.cuModuleGetFunction, gone(module, "cuModuleLoadFatBinary", fat((CODE, 90, True))))
use(driver.cuModuleGetFunction, module("cuModuleLoad", sys.argv[1].encode() + b".cubin"))
use(driver.cuLibraryGetKernel, library("cuLibraryLoadFromFile", sys.argv[1].encode() + b".cubin"))
use(driver.cuLibraryGetKernel, library("cuLibraryLoadData", ctypes.byref(wrapper)), convert=True)
again = gone(library, "cuLibraryLoadData", CODE)
use(driver.cuLibraryGetKernel, again)
ok(driver.cuLibraryUnload(again))
use(driver.cuModuleGetFunction, gone(module, "cuModuleLoadData", elf((b"first", ((0, 8), (8, 40), (48, 4))), (b"second", ((0, 8),)))))
json.dump(said, open(sys.argv[1], "w"))
"""


@pytest.mark.parametrize("version", ["12.2", "13.0"])
def test_code_says_what_an_old_driver_does_not(tmp_path, version):
    """Drivers before CUDA 12.4 do not say where a kernel's parameters lie; the code that was loaded does, in whatever way it came."""
    events = record(tmp_path, IMAGES, SIMGPU_CUDA=version)
    found = [[e.get("by", ""), e.get("places", [])] for e in events if e["kind"] == "use"]
    said = json.loads((tmp_path / "said").read_text())
    unnamed = [["" if not places else by, places] for by, places in found]
    assert unnamed == said
    info = json.loads(subprocess.run([toy.TOOL, "info", tmp_path / "run.gmt", "--json"], capture_output=True, text=True, check=True).stdout)
    assert (info["launches"], info["launches_unread"]) == (len(said), len(said) // 3)
