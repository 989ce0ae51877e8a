# SPDX-License-Identifier: Apache-2.0
"""Whole models on the simulated device: each trains, and what PyTorch's allocator counts is what follows
from the shapes of its tensors. Nothing of ours records here: this is the device by itself."""
import json

import pytest

from conftest import BUILD, REAL

pytestmark = [pytest.mark.forks, pytest.mark.skipif(REAL or not (BUILD / "libsimgpu.so").exists(), reason="for the simulated device")]

MIB = 1 << 20
SCALER = 1024  # a gradient scaler's two numbers, one block each
STATES = {"adamw": 2, "fused": 2, "capturable": 2, "sgd": 1, "adagrad": 1}  # tensors a parameter


def run(programs, *args, timeout=600, **kw):
    done = programs(*args, traced=False, timeout=timeout, **kw)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return done


GROUPS = {
    "text": ["gpt2", "gpt2:fused", "qwen2", "bert", "lora", "t5"],
    "images": ["vit", "resnet", "resnet:sgd", "unet", "unet:amp", "convnext", "convnext:amp", "video"],
    "others": ["lstm", "lstm:capturable", "whisper", "mixtral", "experts", "multihead", "speech", "speech:adagrad", "flash",
               "checkpointed", "checkpointed_reentrant", "mlp:sgd"],
}


def check_case(said):
    case = said["case"]
    model, states, gradients = said["model"], said["states"], said["gradients"][0]
    assert said["losses_finite"], case
    assert model[0] <= said["built"] <= model[1], case
    assert said["states_numel"] == STATES[said["kind"]] * said["trained_numel"], case
    # Every step ends with the weights and the optimizer's state and nothing else, the first one too. Which
    # experts get tokens is decided by values, which are not computed: their share may grow.
    extra = SCALER if "amp" in case else 0
    if said["all_reached"]:
        assert len(set(said["after"])) == 1, case
        assert model[0] + states[0] <= said["after"][0] - extra <= model[1] + states[1], case
    assert said["peak"] >= model[0] + states[0] + max(said["activations"][0], gradients[0]), case
    assert said["activations"][0] > 0 and gradients[0] >= said["gradients"][1] > 0, case
    assert said["peak"] <= said["reserved"], case


@pytest.mark.matrix
@pytest.mark.parametrize("group", GROUPS)
def test_bytes_follow_from_shapes(programs, group):
    run(programs, "zoo.py", "zoo.json", *GROUPS[group])
    said = json.loads((programs.folder / "zoo.json").read_text())
    # At most 32 MiB for each of cuBLAS and cuBLASLt, in two threads, and what PyTorch keeps beside.
    assert 0 <= said["workspaces"] < 144 * MIB
    assert [c["case"] for c in said["cases"]] == GROUPS[group]
    for case in said["cases"]:
        check_case(case)


@pytest.mark.parametrize("card,workspace", [("h100-80g", 32 * MIB), ("a100-40g", 8519680), ("rtx4090-24g", 8519680)])
def test_workspace_follows_the_card(programs, card, workspace):
    out = run(programs, "-c", """
import torch
a = torch.zeros(64, 64, device="cuda")
before = torch.cuda.memory_allocated()
a @ a
print(torch.cuda.memory_allocated() - before)
""", card=card).stdout
    assert int(out) == workspace, out


def test_gpt2_of_124_million(programs):
    """AdamW, fp32, batch 4 x 512: 5.13 GB is what PyTorch was measured to need for it."""
    out = run(programs, "-c", """
import json, torch
from transformers import GPT2Config, GPT2LMHeadModel
model = GPT2LMHeadModel(GPT2Config()).cuda()
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randint(0, 50257, (4, 512), device="cuda")
after = []
for _ in range(3):
    loss = model(x, labels=x).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    loss = loss.item()
    after.append(torch.cuda.memory_allocated())
print(json.dumps([sum(p.numel() for p in model.parameters()), loss, after, torch.cuda.max_memory_allocated()]))
""").stdout
    numel, loss, after, peak = json.loads(out.splitlines()[-1])
    assert numel == 124_439_808 and loss == loss
    assert abs(peak / 5.13e9 - 1) < 0.002, peak
    assert after[0] == after[2] and 12 * numel <= after[0] <= 12 * numel + 110 * MIB


@pytest.mark.more  # test_exact.py compiles, too
def test_compiled_model(programs):
    """Triton's kernels are compiled, then do nothing; eager and compiled keep the same weights and state."""
    run(programs, "zoo.py", "zoo.json", "compiled")
    case, = json.loads((programs.folder / "zoo.json").read_text())["cases"]
    assert case["losses_finite"] and case["after"][1] == case["after"][3]
    assert case["model"][0] + case["states"][0] <= case["after"][3] <= case["model"][1] + case["states"][1] + 33 * MIB
    assert list((programs.folder / "triton").rglob("*.cubin"))


# ---- several devices ----

RANK = """
import json, os, pickle, sys, time, torch, torch.distributed as dist, models
how, rank = sys.argv[1], int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)

def outside():
    free, total = torch.cuda.mem_get_info()
    return total - free - torch.cuda.memory_reserved()

before = outside()
dist.init_process_group("nccl")
at_once = outside() > before  # PyTorch 2.15 makes the communicator here, and one pair then needs no other

def let_go():  # of all collectives, by NCCL's watchdog: PyTorch's own record says so (from 2.4 on)
    record = getattr(torch._C._distributed_c10d, "_dump_nccl_trace", lambda: pickle.dumps({}))
    return all(e.get("retired", True) for e in pickle.loads(record()).get("entries", []))

def allocated():  # once the watchdog has let go of what is done, for which it looks every tenth of a second
    said, until = [], time.monotonic() + 60
    while not let_go() and time.monotonic() < until:
        time.sleep(0.02)
    while len(said) < 4 or len(set(said[-4:])) > 1:
        said.append(torch.cuda.memory_allocated())
        time.sleep(0.1)
    return said[-1]

model = models.Blocks(width=256).cuda()
full = sum(p.numel() * p.element_size() for p in model.parameters())
if how == "ddp":
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
else:
    from torch.distributed.fsdp import fully_shard
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
loss_of_batch = models.loss_of(model)
after, losses = [], []
for _ in range(4):
    loss = loss_of_batch()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
    del loss
    after.append(allocated())
total = torch.ones(3, device="cuda")
dist.all_reduce(total)
parts = [torch.empty_like(total) for _ in range(dist.get_world_size())]
dist.all_gather(parts, total)
half = dist.new_group(list(range(2)))
if rank < 2:
    dist.all_reduce(total, group=half)
if rank == 0:
    dist.send(total, 1)
elif rank == 1:
    dist.recv(total, 0)
dist.barrier()
said = [None] * dist.get_world_size()
dist.all_gather_object(said, {"how": how})
assert said == [{"how": how}] * dist.get_world_size(), said
def local(t):
    return t._local_tensor if hasattr(t, "_local_tensor") else t
mine = sum(local(p).numel() * 4 for p in model.parameters())
states = sum(local(t).numel() * 4 for s in optimizer.state.values() for t in s.values() if t.dim())
with open(f"said.{rank}", "w") as f:
    json.dump([rank, losses, full, mine, states, after, outside() - before, at_once], f)
dist.destroy_process_group()
"""


@pytest.mark.matrix
@pytest.mark.parametrize("how,ranks", [("ddp", 2), ("fsdp2", 4)])
def test_ranks(programs, how, ranks):
    script = programs.folder / "rank.py"
    script.write_text(RANK)
    run(programs, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks, script, how, count=ranks)
    shards = 0
    for i in range(ranks):
        rank, losses, full, mine, states, after, outside, at_once = json.loads((programs.folder / f"said.{i}").read_text())
        assert rank == i and all(x == x for x in losses)
        assert after[-2] == after[-1]  # the first steps are others: DDP then builds its buckets anew
        if how == "ddp":
            assert mine == full and states == 2 * full
        else:
            assert mine <= full / ranks + 64 * 1024 and states == 2 * mine
        shards += mine
        # Outside of the allocator: code and stacks, NCCL's channels of all ranks and their ring; for the first two a ring and a pair. And cuBLAS.
        known = 94 + 362 + 196 + (48 if ranks > 2 else 0) + 24 * 12 + ((1 if at_once else 2) * 196 + (24 + 32) * 12 if rank < 2 else 0)
        assert 0 <= outside - known * MIB <= 136 * MIB, (rank, outside)
    assert shards == (full * ranks if how == "ddp" else full)


# ---- the rest of PyTorch that talks to the device ----

def script(programs, code, **kw):
    return run(programs, "-c", code, **kw).stdout


def test_generate_stops(programs):
    """No token is ever the end token, so it is the length that stops it: a flag that is kept on the device."""
    out = script(programs, """
import torch
from transformers import GPT2Config, GPT2LMHeadModel
model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=2, vocab_size=100, eos_token_id=99, bos_token_id=1)).cuda().eval()
out = model.generate(torch.ones(2, 5, dtype=torch.long, device="cuda"), max_new_tokens=20, do_sample=False, pad_token_id=0)
print(*out.shape)
""")
    assert out.split()[-2:] == ["2", "25"]


VALUES = """
import torch
cases = dict(
    eq=lambda a, b: a == b, ne=lambda a, b: a != b, lt=lambda a, b: a < b, ge=lambda a, b: a >= b, add=lambda a, b: a + b,
    sub=lambda a, b: a - b, mul=lambda a, b: a * b, land=lambda a, b: a & b, lor=lambda a, b: a | b, xor=lambda a, b: a ^ b,
    eq_number=lambda a, b: a == 3, gt_number=lambda a, b: a > 0, add_number=lambda a, b: a + 2, from_number=lambda a, b: 1 - a,
    factor=lambda a, b: torch.add(a, b, alpha=2), full=lambda a, b: torch.full((3,), 7, device=a.device),
    top=lambda a, b: a.max(), low=lambda a, b: a.min(), total=lambda a, b: a.sum(), some=lambda a, b: (a == 0).any(),
    every=lambda a, b: (b > 0).all(), flags=lambda a, b: a.bool(), mixed=lambda a, b: a & ~(b == 5), size=lambda a, b: a.abs(),
    finite=lambda a, b: torch.isfinite(a.float()).all(), narrow=lambda a, b: a.int() * 2, wide=lambda a, b: a.double() * 2.5,
    column=lambda a, b: a.view(2, 2)[:, 1] + b.view(2, 2)[:, 0], spread=lambda a, b: a.view(2, 2) * b[:2], turned=lambda a, b: a.view(2, 2).t() == 3,
    in_place=lambda a, b: a.clone().add_(b), again=lambda a, b: (a + b).clone(), mean=lambda a, b: a.float().mean(),
    quotient=lambda a, b: a / b, inverse=lambda a, b: torch.div(torch.tensor(2.0), b.float()), half=lambda a, b: a.float() / a.float().sum(), lengths=lambda a, b: (b.view(2, 2) > 4).sum(1),
    rows=lambda a, b: a.view(2, 2).amax(0), each=lambda a, b: (a.view(2, 2) > 0).all(1), some_in=lambda a, b: (a.view(2, 2) == 0).any(1),
    middle=lambda a, b: torch.stack([a, b] * 3).view(2, 3, 4).double().mean(1), every_other=lambda a, b: b[::2].sum(), cat=lambda a, b: torch.cat([a, b[:1]]), columns=lambda a, b: torch.cat([a.view(2, 2).t(), b.view(2, 2)], 1),
    stack=lambda a, b: torch.stack([a, b], 1), scalars=lambda a, b: torch.stack([a[0], b[3], a[2]]), flags_cat=lambda a, b: torch.cat([a > 0, b > 0]),
    many=lambda a, b: torch.cat([a, b] * 60), vectors=lambda a, b: torch.cat([a.double().view(2, 2), b.double().view(2, 2)], 1),
    one_by_one=lambda a, b: assigned(torch.zeros_like(a)), zeros_first=lambda a, b: torch.cat([torch.zeros(200, device=a.device), a.float()]))
def assigned(t):
    t[1], t[3] = 5, 7
    return t
a, b = torch.tensor([1, 0, 3, -2]), torch.tensor([1, 5, 3, 7])
wrong = []
for name, case in cases.items():
    x, y = case(a.cuda(), b.cuda()).cpu(), case(a, b)
    if not torch.equal(x, y) or x.dtype != y.dtype:
        wrong.append((name, x.tolist(), y.tolist()))
print(len(cases), wrong)
"""


@pytest.mark.matrix
def test_small_results_are_those_of_the_cpu(programs):
    """Flags and counters, which programs read back to decide how to go on, are computed."""
    assert script(programs, VALUES).split("\n")[-2] == "51 []"


CHECKS = """
import torch
from torch.distributions import Bernoulli, Categorical, Normal
from torchvision.models.detection import retinanet_resnet50_fpn
big, rows = torch.randn(1000, 1000, device="cuda"), torch.randn(8, 9, device="cuda") @ torch.randn(9, 4, device="cuda")
assert torch.isfinite(big).all() and (rows.exp() > 0).all() and not torch.isnan(big).any() and not (rows <= rows[:, :1]).any()
assert torch.allclose(big, big + 0) and torch.equal(rows, rows.clone())
Normal(rows, rows.exp()).rsample(), Categorical(probs=rows.softmax(-1)).sample(), Bernoulli(rows.sigmoid()).sample()
# What is known decides, zeros too.
flags = torch.zeros(4, dtype=torch.bool, device="cuda")
assert not flags.all() and not flags.any() and (~flags).all() and not torch.equal(flags, ~flags)
flags[1] = True
assert flags.any() and not flags.all() and flags.tolist() == [False, True, False, False]
# Boxes that a detector scales are no empty ones; its anchors match none, which training allows.
model = retinanet_resnet50_fpn(weights=None, weights_backbone=None, num_classes=5, min_size=64, max_size=80).cuda()
target = dict(boxes=torch.tensor([[10, 10, 50, 50.]], device="cuda"), labels=torch.tensor([1], device="cuda"))
sum(model([torch.randn(3, 64, 64, device="cuda")], [target]).values()).backward()
print(len(model.eval()([torch.randn(3, 64, 64, device="cuda")])[0]["boxes"]))
"""


@pytest.mark.matrix
def test_checks_of_what_kernels_compute_pass(programs):
    """A guess raises no alarm: programs that look whether all is finite, positive or equal go on. A detector whose masks
    are assumed to be true finds as many boxes as it ever gives."""
    assert script(programs, CHECKS).splitlines()[-1] == "300"


JAGGED = """
import torch
rows = torch.nested.nested_tensor([torch.arange(n) for n in (5, 4, 11)], layout=torch.jagged).to("cuda")
padded = torch.nested.to_padded_tensor(rows, 0)
lengths = rows.offsets().diff()
logits = torch.randn(*padded.shape, 7, device="cuda")
parts = torch.nested.narrow(logits, 1, torch.zeros_like(lengths), lengths, layout=torch.jagged).unbind()
print(tuple(padded.shape), [len(p) for p in parts], torch.cat(list(parts)).numel())
"""


@pytest.mark.matrix
def test_lengths_of_rows_stay_known(programs):
    """As trainers of policies keep answers: rows of several lengths, filled up for the model by a kernel that is not computed; results are cut by them."""
    assert script(programs, JAGGED).splitlines()[-1] == "(3, 11) [5, 4, 11] 140"


COUNTERS = """
import json, torch
said = {}
norm = torch.nn.BatchNorm1d(8).cuda()
said["batches"] = [(norm(torch.randn(4, 8, device="cuda")), norm.num_batches_tracked.item())[1] for _ in range(3)]
torch.set_default_device("cuda")
for name, options in [("Adam", {}), ("AdamW", dict(capturable=True)), ("NAdam", dict(foreach=False)), ("RAdam", {}), ("Adam", dict(fused=True))]:
    many, few = [[torch.nn.Parameter(torch.ones(8, 8)) for _ in range(n)] for n in (3 if len(said) > 1 else 800, 2)]
    optimizer = getattr(torch.optim, name)([dict(params=many), dict(params=few)], **options)
    for _ in range(3):
        for p in many + few:
            p.grad = torch.ones_like(p)
        optimizer.step()
    said[f"{name} {options}"] = sorted({state["step"].item() for state in optimizer.state.values()})
p = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([p])
scaler = torch.amp.GradScaler("cuda", init_scale=1024., growth_interval=2)
said["scales"] = []
for _ in range(5):
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    said["scales"].append(scaler.get_scale())
print(json.dumps(said))
"""


@pytest.mark.matrix
def test_optimizers_count_their_steps(programs):
    """Counters on the device, at first more than one launch takes: Adam divides by what it reads back of them."""
    said = json.loads(script(programs, COUNTERS).splitlines()[-1])
    assert said.pop("batches") == [1, 2, 3]
    assert said.pop("scales") == [1024.0, 2048.0, 2048.0, 4096.0, 4096.0]
    assert len(said) == 5 and all(steps == [3.0] for steps in said.values()), said


def test_graph_replays(programs):
    out = script(programs, """
import warnings, torch
warnings.simplefilter("error")
model = torch.nn.Linear(64, 64).cuda()
x = torch.randn(8, 64, device="cuda")
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    model(x)
torch.cuda.current_stream().wait_stream(stream)
graph = torch.cuda.CUDAGraph()
assert not torch.cuda.is_current_stream_capturing()
with torch.cuda.graph(graph):
    assert torch.cuda.is_current_stream_capturing()
    y = model(x)
held = torch.cuda.memory_allocated()
for _ in range(3):
    graph.replay()
torch.cuda.synchronize()
assert torch.cuda.memory_allocated() == held and tuple(y.shape) == (8, 64)
print("ok")
""")
    assert out.split()[-1] == "ok"


def test_profiler_and_loader(programs):
    out = script(programs, """
import torch
from torch.profiler import profile, ProfilerActivity
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.randn(40, 16), torch.arange(40))
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as prof:
    seen = 0
    for x, y in DataLoader(data, batch_size=8, num_workers=2, pin_memory=True):
        assert x.is_pinned()
        z = x.to("cuda", non_blocking=True)
        seen += len(z)
        assert torch.equal(y.cuda().cpu(), y)
    torch.cuda.synchronize()
names = {e.key for e in prof.key_averages()}
assert "aten::copy_" in names or "aten::_to_copy" in names, names
print(seen)
""")
    assert out.split()[-1] == "40"


@pytest.mark.matrix
def test_operators_agree_with_cpu(programs):
    """Shapes and types of results on the device are those of the CPU; the program counts its operators."""
    out = script(programs, "import zoo_ops; zoo_ops.main()")
    line = json.loads(out.splitlines()[-1])
    assert line["failed"] == {} and line["compared"] > 100
