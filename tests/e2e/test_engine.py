# SPDX-License-Identifier: Apache-2.0
"""The account of a program that serves a model, against what the program itself measures: docs/questions/serve.py and others in its
way. A program that serves nothing has none."""
import re

import pytest

from conftest import ROOT

pytestmark = pytest.mark.forks

SERVE = ROOT / "docs/questions/serve.py"

# A cache of the script, in one piece, by its name; no graphs, no pass before it.
NAMED = """
import torch
from torch import nn
layers = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(6)).double().cuda().half()
spare = torch.zeros(1 << 30, device="cuda")
del spare
kv_cache = torch.zeros(2, 6, 4, 1024, 1024, device="cuda")
def create_lora_slots(n):
    return [torch.zeros(16, 4096, dtype=torch.half, device="cuda") for _ in range(n)]
slots = create_lora_slots(6)
with torch.inference_mode():
    for i in range(5):
        x = torch.zeros(4, 1024, dtype=torch.half, device="cuda")
        for n, layer in enumerate(layers):
            x = layer(x)
            kv_cache[0, n, :, i] = x
print("KV cache:", kv_cache.numel() * 4, "bytes")
"""

# Graphs of each piece of a pass, of several lengths, and then of whole passes, in one pool; what the program saw each of both take.
PIECES = """
import torch
from torch import nn
pool, graphs = torch.cuda.graph_pool_handle(), []
class Piece(nn.Linear):
    def forward(self, x):
        if not captures or whole:
            return super().forward(x)
        return captured(super().forward, x)
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Piece(2048, 2048) for _ in range(4))
    def forward(self, x, cache):
        for n, layer in enumerate(self.layers):
            x = layer(x)
            cache[n, :len(x)] = x
        return x
def captured(call, *args):
    graphs.append(torch.cuda.CUDAGraph())
    with torch.cuda.graph(graphs[-1], pool=pool, stream=stream):
        return call(*args)
model = Model().cuda()
kv_cache = torch.zeros(4, 1 << 16, 2048, device="cuda")
kept, stream = [], torch.cuda.Stream()
with torch.inference_mode():
    for whole in (False, True):
        for n in (2048, 1024, 512):
            x = torch.zeros(2 * n if whole else n, 2048, device="cuda")
            captures = False
            model(x, kv_cache)
            captures = True
            kept.append(captured(model, x, kv_cache) if whole else model(x, kv_cache))
        print("whole" if whole else "pieces", sum(s["total_size"] for s in torch.cuda.memory_snapshot() if s["segment_pool_id"] == pool))
"""

# A policy that learns from its own answers, and a frozen reference: keys and values in one piece of fixed size, or appended to. The
# figures are the program's own.
LEARNS = """
import sys, torch
from torch import nn
grows = sys.argv[1] == "grows"
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = nn.Linear(2048, 2048)
    def forward(self, x, past, at):
        k = self.key(x)
        if past is not None and grows:
            k = torch.cat([past, k], 1)
        elif past is not None:
            past[:, at:at + x.shape[1]] = k
        return x + k[:, -x.shape[1]:], k
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(6))
    def forward(self, x, past=None, at=0):
        new = []
        for n, layer in enumerate(self.layers):
            x, k = layer(x, None if past is None else past[n], at)
            new.append(k)
        return x, new
policy, reference = (Model().cuda() for _ in range(2))
reference.requires_grad_(False)
optimizer = torch.optim.AdamW(policy.parameters())
size = lambda tensors: sum(t.untyped_storage().nbytes() for t in tensors)
most, kv_cache = 0, None if grows else torch.zeros(6, 8, 256, 2048, device="cuda")
def answer(x):
    global most
    past, at = kv_cache, 0
    for _ in range(5):
        x, new = policy(x, past, at)
        past, at = new if grows else kv_cache, at + x.shape[1]
        most, x = max(most, size(past) if grows else size([past])), x[:, -1:].softmax(-1)
    return x
for _ in range(3):
    with torch.no_grad():
        y, _ = reference(answer(torch.zeros(8, 128, 2048, device="cuda")), None)
    x, _ = policy(torch.zeros(8, 1, 2048, device="cuda"))
    (x - y).square().mean().backward()
    optimizer.step()
    print("gradients", size(p.grad for p in policy.parameters()))
    optimizer.zero_grad()
print("trained", size(policy.parameters()))
print("weights", size(reference.parameters()))
print("optimizer_state", size(s for state in optimizer.state.values() for s in state.values() if s.is_cuda))
print("kv_cache", most)
"""

# The same tensors, and not a cache: batches that are used again, a queue of results that grows, a training.
OTHERS = {
    "benchmark": """
import torch
from torch import nn
model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(6))).cuda()
x = torch.zeros(4096, 1024, device="cuda")
with torch.inference_mode():
    for _ in range(6):
        model(x)
""",
    "results": """
import torch
from torch import nn
model, kept = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(6))).cuda(), []
with torch.inference_mode():
    for _ in range(6):
        kept.append(model(torch.zeros(4096, 1024, device="cuda")))
""",
    "training": """
import torch
from torch import nn
model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(6))).cuda()
queue = [torch.zeros(1024, 1024, device="cuda") for _ in range(6)]
for _ in range(4):
    model(queue[0]).sum().backward()
""",
    "evaluation": """
import torch
from torch import nn
model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(6))).cuda()
gates, kept = [torch.zeros(1024, 1024, device="cuda") for _ in range(6)], []
for _ in range(4):
    model(torch.zeros(1024, 1024, device="cuda")).sum().backward()
    with torch.no_grad():
        for gate in gates:
            kept.append(model(gate))
""",
    "unused": """
import torch
from transformers import LlamaConfig, LlamaForCausalLM
config = LlamaConfig(vocab_size=1000, hidden_size=512, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8)
policy, reference = LlamaForCausalLM(config).cuda(), LlamaForCausalLM(config).cuda()
def scores(model, ids):
    return model(input_ids=ids).logits.log_softmax(-1)
for _ in range(4):
    ids = torch.randint(0, 1000, (4, 256)).cuda()
    with torch.no_grad():
        wanted = scores(reference, ids)
    (scores(policy, ids) - wanted).square().mean().backward()
""",
    "constants": """
import torch
from torch import nn
layers = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(6)).cuda()
biases = [torch.full((1024, 1024), -1.0, device="cuda") for _ in layers]
with torch.inference_mode():
    for _ in range(6):
        x = torch.zeros(1024, 1024, device="cuda")
        for layer, bias in zip(layers, biases):
            x = layer(x) + bias
""",
}


def engine(tool, file):
    (device,) = tool.json("report", file)["devices"]
    account = device.get("engine")
    return account, {part["part"]: part for part in account["parts"]} if account else {}


@pytest.mark.parametrize("conf", ["", "expandable_segments:True"])
@pytest.mark.parametrize("arguments", [[], ["--graphs"], ["--utilization", "0.5", "--layers", "6", "--width", "2048"]], ids=["graphs", "eager", "half"])
def test_account_is_the_programs_own(tool, programs, arguments, conf):
    waits = programs.folder / "serve.py"  # the device is sampled at most once in 10 ms, and what follows takes less than that here
    waits.write_text(SERVE.read_text().replace("        graph = ", "        __import__('time').sleep(0.02)\n        graph = "))
    done = programs(waits, *arguments, GPUMEMTRACE_OUTPUT="run.gmt", PYTORCH_CUDA_ALLOC_CONF=conf)
    assert done.returncode == 0, done.stderr
    own = {line.split(":")[0]: int(re.search(r": (\d+)", line)[1]) for line in done.stdout.splitlines()}
    account, parts = engine(tool, programs.folder / "run.gmt")
    assert parts["weights"]["bytes"] == pytest.approx(own["weights"], rel=0.01)
    assert parts["kv_cache"]["bytes"] == parts["kv_cache"]["planned_bytes"] == pytest.approx(own["KV cache"], rel=0.01)
    assert parts["work"]["planned_bytes"] == own["passes of 4,096 tokens"]
    graphs = parts.get("cuda_graphs", {"bytes": 0, "planned_bytes": 0})
    assert (graphs["bytes"], graphs["planned_bytes"]) == (own["CUDA graphs"], 0) and bool(own["CUDA graphs"]) == ("--graphs" not in arguments)
    total = int(re.search(r"of (\d+) bytes, PyTorch (\d+)", done.stdout)[1])
    assert account["total_bytes"] == total == sum(p["bytes"] for p in parts.values()) == sum(p["planned_bytes"] for p in parts.values())
    # The device is sampled when memory or code comes; what the driver takes for graphs after that is seen with the next sample.
    assert 0 <= own["device"] - (total - parts["free"]["bytes"]) <= 8 << 20
    utilization = float(arguments[1]) if "--utilization" in arguments else 0.9
    assert account["planned_share"] == pytest.approx(utilization, abs=0.002)
    assert {p["file"] for p in parts.values() if p["part"] in ("weights", "kv_cache")} == {str(waits)}
    text = tool("report", programs.folder / "run.gmt")
    assert text.index("A serving engine on device 0") < text.index("Device 0: peak")


def test_graphs_of_pieces_and_of_whole_passes(tool, programs):
    """As vLLM and SGLang capture them: of each part of a compiled model, and of all of it."""
    (programs.folder / "pieces.py").write_text(PIECES)
    done = programs(programs.folder / "pieces.py", GPUMEMTRACE_OUTPUT="run.gmt")
    assert done.returncode == 0, done.stderr
    own = {kind: int(n) for kind, n in map(str.split, done.stdout.splitlines())}
    _, parts = engine(tool, programs.folder / "run.gmt")
    assert parts["graphs_of_pieces"]["bytes"] == own["pieces"] > 30 << 20
    assert parts["cuda_graphs"]["bytes"] == own["whole"] - own["pieces"] > 30 << 20


def test_the_pool_of_a_class_that_says_so(tool, programs):
    """SGLang's names: the pool is the cache, what hands its places out is not."""
    (programs.folder / "pools.py").write_text(NAMED.replace("kv_cache = torch.zeros(2, 6, 4, 1024, 1024, device=\"cuda\")", """
class MHATokenToKVPool:
    def _create_buffers(self):
        return [torch.zeros(6, 4, 1024, 1024, device="cuda") for _ in range(2)]
class TokenToKVPoolAllocator:
    def clear(self):
        self.free = torch.arange(1 << 20, device="cuda")
pages, allocator = MHATokenToKVPool()._create_buffers(), TokenToKVPoolAllocator()
allocator.clear()""").replace("kv_cache[0, n, :, i] = x", "pages[0][n, :, i] = x").replace("kv_cache.numel() * 4", "8 * pages[0].numel()"))
    account, parts = engine(tool, programs.traced(programs.folder / "pools.py"))
    assert parts["kv_cache"]["bytes"] == 2 * 6 * 4 * 1024 * 1024 * 4 and parts["other"]["bytes"] >= 8 << 20


def test_a_cache_without_a_plan(tool, programs):
    (programs.folder / "named.py").write_text(NAMED)
    account, parts = engine(tool, programs.traced(programs.folder / "named.py"))
    assert parts["lora"]["bytes"] == 6 * 16 * 4096 * 2 and parts["weights"]["bytes"] == 6 * (1024 * 1024 + 1024) * 2
    assert parts["kv_cache"]["bytes"] == 2 * 6 * 4 * 1024 * 1024 * 4 and "planned_bytes" not in parts["kv_cache"] and "planned_share" not in account


@pytest.mark.parametrize("how", ["fixed", "grows"])
def test_training_and_serving_in_one_process(tool, programs, how):
    (programs.folder / "learns.py").write_text(LEARNS)
    done = programs(programs.folder / "learns.py", how, GPUMEMTRACE_OUTPUT="run.gmt")
    assert done.returncode == 0, done.stderr
    own = dict(line.split() for line in done.stdout.splitlines())
    account, parts = engine(tool, programs.folder / "run.gmt")
    assert account["total_bytes"] == sum(p["bytes"] for p in parts.values()) == sum(p["training_bytes"] for p in parts.values())
    for name in ("trained", "weights", "optimizer_state"):
        assert parts[name]["bytes"] == parts[name]["training_bytes"] == pytest.approx(int(own[name]), rel=0.01)
    assert (parts["gradients"]["bytes"], parts["gradients"]["training_bytes"]) == (0, pytest.approx(int(own["gradients"]), rel=0.01))
    # While it is appended to, the old one of 131 tokens is there beside the new one of 132.
    assert parts["kv_cache"]["bytes"] == pytest.approx(int(own["kv_cache"]) * (263 / 132 if how == "grows" else 1), rel=0.01)
    assert parts["kv_cache"]["training_bytes"] == (0 if how == "grows" else int(own["kv_cache"]))
    text = tool("report", programs.folder / "run.gmt")
    assert "Serving beside training on device 0" in text and re.search(r"serving +share +training", text)


@pytest.mark.parametrize("name", OTHERS)
def test_others_have_none(tool, programs, name):
    (programs.folder / "other.py").write_text(OTHERS[name])
    assert engine(tool, programs.traced(programs.folder / "other.py"))[0] is None


# docs/questions/serve.py on cards that are too small: utilization, what else runs out, the phase, whether the cache is the cause.
REFUSALS = {
    "profile": (["--batch-tokens", "400000"], "profile run", False),
    "cache": (["--utilization", "1.3"], "making the KV cache", True),
    "capture": (["--utilization", "0.99", "--graphs", "65536"], "CUDA graph capture", True),
    "serving": (["--utilization", "0.99", "--graphs", "--requests", "131072"], "serving", True),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_an_engine_runs_out_of_memory(tool, programs, name):
    arguments, phase, cache = REFUSALS[name]
    done = programs(SERVE, *arguments, GPUMEMTRACE_OUTPUT="run.gmt", card="card=8GiB")
    assert done.returncode and "OutOfMemoryError" in done.stderr, done.stderr
    found = tool.json("oom", programs.folder / "run.gmt")
    assert found["engine_phase"] == phase and (found["cause"] == "kv_cache") == cache, found
    assert f"The engine's phase: {phase} (" in tool("oom", programs.folder / "run.gmt")
    smaller = [r for r in found["remedies"] if r["name"] == "smaller_cache"]
    assert bool(smaller) == cache and all("accumulate" not in r["what"] for r in found["remedies"])
    if cache and name != "cache":  # what it says makes room for this request, so that the program comes further; of a cache other pieces follow
        lower = float(re.search(r"lower by (\d\.\d\d)", smaller[0]["what"])[1])
        arguments[1] = str(float(arguments[1]) - lower)
        again = programs(SERVE, *arguments, GPUMEMTRACE_OUTPUT="again.gmt", card="card=8GiB")
        if again.returncode:
            later = tool.json("oom", programs.folder / "again.gmt")
            assert (later["stack"], later["asked_bytes"]) != (found["stack"], found["asked_bytes"])


def test_an_engine_that_leaks_until_memory_is_gone(tool, programs):
    """Its KV cache holds most, but what it keeps of each request is why: without that the same requests pass."""
    arguments = ["--graphs", "--requests", "1", "4", "64", "--repeat", "300"]
    done = programs(SERVE, *arguments, "--keep-logits", GPUMEMTRACE_OUTPUT="leak.gmt", card="card=8GiB")
    assert "OutOfMemoryError" in done.stderr
    found = tool.json("oom", programs.folder / "leak.gmt")
    assert found["cause"] == "retained_graph" and found["remedies"][0]["name"] == "let_go" and found["remedies"][0]["enough"], found
    assert {"growth", "out_of_memory"} >= {m["kind"] for m in tool.json("report", programs.folder / "leak.gmt")["summary"]}
    done = programs(SERVE, *arguments, GPUMEMTRACE_OUTPUT="clean.gmt", card="card=8GiB")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("keeps", [True, False])
def test_a_server_that_grows_by_little(tool, programs, keeps):
    """Much less than a hundredth of what the KV cache has, pass after pass."""
    log = ["--keep-logits"] if keeps else []
    done = programs(SERVE, "--graphs", "--requests", "1", "8", "--repeat", "150", *log, GPUMEMTRACE_OUTPUT="run.gmt", card="a100-40g")
    assert done.returncode == 0, done.stderr
    summary = {m["kind"]: m for m in tool.json("report", programs.folder / "run.gmt")["summary"]}
    assert set(summary) == ({"growth"} if keeps else set()), summary


# In SGLang's way: a layer makes its weights in a method, a pool its buffers, and memory ends before the first pass.
STARTS = """
import torch
from torch import nn
class QKVLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.create_weights()
    def create_weights(self):
        self.weight = nn.Parameter(torch.empty(3 << 10, 1 << 12, device="cuda"), requires_grad=False)
class TokenToKVPool:
    def __init__(self):
        self.buffers = [torch.zeros(1 << 28, dtype=torch.uint8, device="cuda") for _ in range(6)]
class Backend:
    def __init__(self):
        self.workspace = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
model = nn.Sequential(*(QKVLinear() for _ in range(4)))
pool = TokenToKVPool()
print(torch.cuda.memory_allocated(), flush=True)
backend = Backend()
"""


def test_an_engine_that_ends_before_its_first_pass(tool, programs):
    programs.forks = False  # about its end: a forked script's variables are gone when its error is printed
    (programs.folder / "starts.py").write_text(STARTS)
    done = programs(programs.folder / "starts.py", GPUMEMTRACE_OUTPUT="run.gmt", card="card=3GiB")
    found = tool.json("oom", programs.folder / "run.gmt")
    assert "OutOfMemoryError" in done.stderr and found["engine_phase"] == "start-up" and found["cause"] == "kv_cache", found
    held = found["categories"]
    assert held["parameters"] == 4 * 48 << 20 and held["kv_cache"] == 6 << 28 and sum(held.values()) == int(done.stdout), held


NO_ENGINES = {
    "trains": """
import torch
from torch import nn
model = nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(4))).cuda()
def warmup(n):
    model(torch.zeros(n, 4096, device="cuda")).sum().backward()
for n in (64, 64, 1 << 20):
    warmup(n)
""",
    "takes rows of keys after each pass": """
import torch
from torch import nn
model, cache = nn.Linear(1024, 1024).cuda(), [torch.zeros(4, 1, 1024, device="cuda") for _ in range(8)]
with torch.no_grad():
    for n in range(4096):
        step = [model(x[:, -1:]) for x in cache]
        cache = [torch.cat([x, new], 1).repeat(1 + n % 2, 1, 1) for x, new in zip(cache, step)]
""",
}


@pytest.mark.parametrize("name", NO_ENGINES)
def test_other_programs_have_no_phase(tool, programs, name):
    (programs.folder / "train.py").write_text(NO_ENGINES[name])
    done = programs(programs.folder / "train.py", GPUMEMTRACE_OUTPUT="run.gmt", card="card=4GiB")
    assert done.returncode and "engine" not in tool("oom", programs.folder / "run.gmt")
    assert "engine_phase" not in tool.json("oom", programs.folder / "run.gmt")
