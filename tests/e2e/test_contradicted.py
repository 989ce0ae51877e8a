# SPDX-License-Identifier: Apache-2.0
"""Sentences that programs after public reports contradicted, on other programs of their kinds: what a class is called, which memory is of an
earlier call, how much a change saves, and which change PyTorch refuses."""
import conftest
import pytest
from conftest import BUILD, Programs

pytestmark = pytest.mark.skipif(not (BUILD / "libsimgpu.so").exists(), reason="built without CUDA headers")

PROGRAM = """
import contextlib, sys, torch, torch.utils.checkpoint
from torch import nn
from torch.nn import functional as F
how = sys.argv[1]
D = 512

class Pool(nn.Module):  # index_add needs its source's shape alone in backward
    def __init__(self):
        super().__init__()
        self.edge, self.out = nn.Linear(D, D), nn.Linear(D, D)
    def forward(self, x, at):
        for _ in range(3):
            x = x + torch.zeros_like(x).index_add(0, at, x[at].exp() * self.edge(x)[at])
        return self.out(x)

class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(D, 3 * D)
    def forward(self, x, keep):
        for _ in range(4):
            q, k, v = self.qkv(x).unflatten(-1, (3, 8, -1)).permute(2, 0, 3, 1, 4)
            x = x + F.scaled_dot_product_attention(q, k, v, attn_mask=keep).transpose(1, 2).flatten(2)
        return x

def train(net, *inputs, steps=3, on_host=False):
    optimizer = torch.optim.SGD(net.parameters(), 1e-3)
    for step in range(steps):
        with torch.autograd.graph.save_on_cpu() if on_host else contextlib.nullcontext():
            loss = net(*inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def layers(n=8):
    return nn.Sequential(*[m for _ in range(n) for m in (nn.Linear(D, D), nn.ReLU())]).cuda()

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(D, 2 * D), nn.Linear(2 * D, D)
    def forward(self, x):
        h = torch.tanh(self.a(x))
        return x + torch.tanh(self.b(h))

class Residual(nn.Module):  # the operators of self.net have one line
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(*[m for _ in range(2) for m in (nn.Linear(D, D), nn.Tanh(), nn.Dropout(0.1))])
    def inside(self, x):
        out = self.net(x)
        return torch.relu(out + x)
    def forward(self, x):
        if how == "again":
            return torch.utils.checkpoint.checkpoint(self.inside, x, use_reentrant=False)
        out = self.net(x)
        return torch.relu(out + x)

class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(D, D), nn.BatchNorm1d(D), nn.Tanh())
    def forward(self, x):
        return self.net(x)

class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = layers()
    def forward(self, x):
        return self.net(x)

if how in ("shapes", "on_host"):
    train(Pool().cuda(), torch.rand(4096, D, device="cuda"), torch.randint(0, 4096, (16384,), device="cuda"), on_host=how == "on_host")
elif how in ("padded", "aligned"):
    n = 1025 if how == "padded" else 1024
    train(Attends().cuda(), torch.rand(4, n, D, device="cuda"), torch.ones(4, 1, 1, n, dtype=torch.bool, device="cuda"))
elif how == "copies":
    net = layers()
    net._register_state_dict_hook(lambda module, state, prefix, _: state.update({k: v.clone() for k, v in state.items()}))
    train(net, torch.rand(64, D, device="cuda"))
    state = net.state_dict()
    print(sum(float(x.sum()) for x in state.values()))
    torch.kept = net, state  # to the end
elif how == "loaded":
    import tempfile
    net = layers()
    net(torch.rand(64, D, device="cuda"))
    with tempfile.TemporaryFile() as file:
        torch.save(net.state_dict(), file)
        file.seek(0)
        net.load_state_dict(torch.load(file, map_location="cuda"))
elif how == "calls":
    net = layers(2).eval()
    with torch.inference_mode():
        for rows in (4096, 65536):
            net(torch.rand(rows, D).cuda())
elif how == "computed":
    net = layers(2)
    noise = torch.rand(96 << 18).cuda()
    kept = noise > 0.5
    values = kept.float()
    print(float((values * noise).sum()))
elif how in ("nodes", "pictures"):
    net = Whole()
    net(torch.rand(*((16384, D) if how == "nodes" else (16384, 1, D)), device="cuda")).mean().backward()
elif how == "asked":
    net = layers()
    for step in range(2):
        x = torch.rand(4096 << 3 * step, 1, D, device="cuda", requires_grad=True)
        torch.autograd.grad(net(x).sum(), x)
elif how == "joined":  # features of all pictures so far, which a metric reads at the end
    net = layers(2)
    train(net, torch.rand(256, D, device="cuda"))
    features = None
    with torch.no_grad():
        for _ in range(40):
            found = net(torch.rand(4096, D, device="cuda"))
            features = found if features is None else torch.cat((features, found))
elif how in ("searched", "zeroed"):  # every candidate is kept with its gradients
    kept = []
    for _ in range(3):
        net = layers()
        optimizer = torch.optim.SGD(net.parameters(), 1e-3)
        kept.append((net, optimizer))
        for _ in range(5):
            optimizer.zero_grad()
            net(torch.rand(64, D, device="cuda")).mean().backward()
            optimizer.step()
            if how == "zeroed":
                optimizer.zero_grad()
        with torch.no_grad():
            net(torch.rand(64, D, device="cuda"))
    with torch.no_grad():
        net(torch.rand(8192, D, device="cuda"))
elif how == "layerwise":  # outputs of one layer for all samples, whose inputs are there already, and then its training
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.mlp = nn.LayerNorm(D), nn.Linear(D, D)
        def forward(self, x):
            return x + self.mlp(self.norm(x))
    net, samples = Layer().cuda(), [torch.rand(4096, D, device="cuda") for _ in range(16)]
    with torch.no_grad():
        targets = [net(x) for x in samples]
    F.l1_loss(net(torch.cat(samples[:4])), torch.cat(targets[:4])).backward()
elif how in ("branches", "branches_on_host"):  # the forward method holds what its second operator saved until it returns
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(D, D), nn.Linear(D, D)
        def forward(self, x):
            held = self.a(x).exp()
            y = self.b(held).tanh().exp()
            return torch.cat((held, y * y, y)).repeat(8, 1)
    train(Branches().cuda(), torch.rand(16384, D, device="cuda"), on_host=how == "branches_on_host")
elif how in ("sums", "sums_again"):  # the loop beside the calls keeps a sum, which no call reads
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(D, D), nn.Linear(D, 2 * D)
        def forward(self, x):
            y, z = self.b(torch.tanh(self.a(x)).exp()).chunk(2, -1)
            return torch.sin(y), z
    class Sums(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(6))
        def forward(self, x):
            total = 0
            for block in self.blocks:
                x, z = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) if how == "sums_again" else block(x)
                total = total + z
            return total
    train(Sums().cuda(), torch.rand(16384, D, device="cuda"))
elif how in ("encoded", "encoded_once"):  # a teacher's outputs go to the host with their graphs
    teacher, net = layers(4), layers(2)
    with torch.set_grad_enabled(how == "encoded"):
        targets = [teacher(torch.rand(1024, D, device="cuda")).cpu() for _ in range(12)]
    train(net, torch.rand(64, D, device="cuda"), steps=6)
elif how in ("epochs", "epochs_of_numbers"):  # losses of an epoch, until their mean is printed
    net, losses = layers(2), []
    optimizer = torch.optim.SGD(net.parameters(), 1e-3)
    for step in range(60):
        loss = net(torch.rand(256, D, device="cuda")).exp().square().mean(1)
        losses.append(loss if how == "epochs" else loss.mean().item())
        optimizer.zero_grad()
        loss.mean().backward(retain_graph=how == "epochs")
        optimizer.step()
        if step % 25 == 24:
            losses.clear()
elif how in ("pairs", "pairs_of_one"):  # each step's prediction and target, until the epoch is over
    net, kept = layers(2), []
    optimizer = torch.optim.SGD(net.parameters(), 1e-3)
    for step in range(60):
        x, y = torch.rand(256, D, device="cuda"), torch.rand(2200 if how == "pairs" else 512, D, device="cuda")
        out = net(x)
        optimizer.zero_grad()
        out.square().mean().backward()
        optimizer.step()
        kept.append((out.detach().exp().repeat(8, 1), y))
        if step % 25 == 24:
            kept.clear()
elif how in ("stored", "stored_weights", "stored_twice"):  # a checkpoint is copied on the device, and written while the next steps run
    net = layers(4)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    def copied(tensors):
        return [x.detach().clone() for x in tensors if x.numel() > 1]
    for step in range(6):
        net(torch.rand(4096, D, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 2:
            weights = copied(net.parameters()) + (copied(net.parameters()) if how == "stored_twice" else [])
            state = [] if how != "stored" else copied([x for s in optimizer.state.values() for x in s.values()])
        if step == 4:
            [x.cpu() for x in weights + state]
            del weights, state
elif how in ("samples", "few_samples"):  # with gradients, between training steps
    net = nn.Sequential(*[Block() for _ in range(8)]).cuda()
    def sample(rows):
        print(float(net(torch.rand(rows, D, device="cuda")).sum()))
    for _ in range(3):
        train(net, torch.rand(2048, D, device="cuda"), steps=2)
        sample(16384 if how == "samples" else 512)
elif how in ("residual", "again"):
    whole = Whole()
    whole.net = nn.Sequential(*[Residual() for _ in range(8)])
    train(whole.cuda(), torch.rand(16384, D, device="cuda"))
elif how == "kept":
    net, kept = layers(2), []
    for _ in range(4):
        train(net, torch.rand(512, D, device="cuda"), steps=1)
        with torch.no_grad():
            kept.append(net(torch.rand(4096, D, device="cuda")))
elif how == "normed":
    net = Normed().cuda()
    with torch.no_grad():  # sets the statistics to those of all rows
        net(torch.rand(65536, D, device="cuda"))
elif how == "validated":
    net = layers(2)
    train(net, torch.rand(1024, D, device="cuda"))
    found = []
    with torch.no_grad():
        while True:
            found.append(net(torch.rand(4096, D, device="cuda")))
elif how in ("logits", "before_backward", "behind_backward"):
    net, loss_of, labels = nn.Linear(D, 8192).cuda(), nn.CrossEntropyLoss(), torch.zeros(4095, dtype=torch.long, device="cuda")
    for step in range(3):
        logits = net(torch.rand(4096, D, device="cuda"))
        shifted = logits[:-1].clone()
        loss = loss_of(shifted, labels)
        if how == "before_backward":
            del logits, shifted
        loss.backward()
        if how == "behind_backward":
            del logits, shifted
elif how == "relaxed":  # a history of updates by hand, without an optimizer
    net, x = layers(4).requires_grad_(False), torch.rand(16384, D, device="cuda")
    velocity = torch.zeros_like(x)
    for step in range(6):
        x = x.detach().requires_grad_()
        (g,) = torch.autograd.grad(net(x).square().sum(), x)
        velocity = 0.9 * velocity + g
        x = x - 0.01 * velocity
elif how == "descended":
    x = nn.Parameter(torch.rand(16384, D, device="cuda"))
    net, optimizer = layers(4).requires_grad_(False), torch.optim.SGD([x], 0.01, momentum=0.9)
    for step in range(6):
        optimizer.zero_grad()
        net(x).square().sum().backward()
        optimizer.step()
elif how in ("teacher", "teacher_later"):
    teacher, net = layers(48).requires_grad_(False), layers(2)
    optimizer = torch.optim.SGD(net.parameters(), 1e-3)
    for rows in [64] * 3 * (how == "teacher_later") + [30000]:
        x = torch.rand(rows, D, device="cuda")
        with torch.no_grad():
            target = teacher(x)
        loss = (net(x) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contradicted")
    (folder / "program.py").write_text(PROGRAM)

    def run(how, card="h100-80g", tags="on"):
        path = folder / f"{how}.gmt"
        if not path.exists():
            conftest.record(path, folder / "program.py", how, card=card, code=int("=" in card), GPUMEMTRACE_TAGS=tags)
        return path
    return run


def findings(tool, path, kind):
    return [f for f in tool.json("advise", path)["findings"] if f["kind"] == kind]


def test_results_are_deleted_before_backward(record, tool):
    """A loss that is a module is a pass of its own: before the next pass said too little."""
    (said,) = findings(tool, record("logits"), "overlap")
    peaks = [tool.json("report", record(how))["devices"][0]["peak_bytes"] for how in ("logits", "before_backward", "behind_backward")]
    assert "at the latest before the next backward pass" in said["what"]
    assert peaks[0] - peaks[1] == pytest.approx(said["saves_bytes"], rel=0.02) and peaks[0] - peaks[2] < said["saves_bytes"] / 50


@pytest.mark.parametrize("how", ["relaxed", "descended"])
def test_a_history_without_an_optimizer_is_no_state_of_one(record, tool, how):
    """Its class is that of what updates use. The changes of an optimizer need an optimizer."""
    made = sum(b["size"] for b in tool.json("live", record(how), "--at", "peak")["blocks"] if b["category"] == "optimizer_state")
    said = {f["kind"] for f in tool.json("advise", record(how))["findings"]}
    assert made >= 32 << 20 and ("offload_state" in said) == (how == "descended"), (made, said)


@pytest.mark.parametrize("how", ["teacher", "teacher_later"])
def test_weights_are_idle_once_a_backward_pass_went_by_without_them(record, tool, how):
    """In the first backward pass a part of it that is still to come might use them."""
    path = record(how, "mine=600MiB")
    said = tool.json("oom", path)
    assert said["phase"] != "forward" and ("idle_weights" in {r["name"] for r in said["remedies"]}) == (how == "teacher_later"), said["remedies"]


def test_saved_for_its_shape_goes_to_the_host_too(record, tool):
    said = findings(tool, record("shapes"), "offload_activations")
    peaks = [tool.json("report", record(how))["devices"][0]["peak_bytes"] for how in ("shapes", "on_host")]
    saved = peaks[0] - peaks[1]
    assert said and said[0]["least_bytes"] - 0.03 * peaks[0] <= saved <= said[0]["saves_bytes"] + 0.03 * peaks[0], (said, peaks)
    range_ = said[0]["saves_bytes"] != said[0]["least_bytes"]
    assert not range_ or " to " in tool("advise", record("shapes")).split("Then the peak is about")[1].split(".\n")[0]


@pytest.mark.parametrize("how", ["samples", "few_samples"])
def test_passes_without_a_backward_pass_are_not_kept_on_the_host(record, tool, how):
    """The peak is in samples that are made with gradients: there is no loss, and no_grad needs no copies."""
    said = {f["kind"]: f for f in tool.json("advise", record(how))["findings"]}
    asked = how == "samples"
    assert [k in said for k in ("no_grad", "offload_activations", "checkpoint")] == [asked, not asked, not asked]


def test_blocks_whose_operators_have_one_line(record, tool):
    said = findings(tool, record("residual"), "checkpoint")
    peaks = [tool.json("report", record(how))["devices"][0]["peak_bytes"] for how in ("residual", "again")]
    saved = peaks[0] - peaks[1]
    assert said and "Checkpoint Residual" in said[0]["what"]
    assert said[0]["least_bytes"] - 0.03 * peaks[0] <= saved <= said[0]["saves_bytes"] + 0.03 * peaks[0], (said, peaks)


def test_results_of_earlier_steps_have_one_name(record, tool):
    listed = [x.split() for x in tool("live", record("kept"), "--at", "peak", "--top", "0").splitlines()]
    report = [x.split() for x in tool("report", record("kept")).splitlines()]
    for name in ("kept", "forward"):  # kept results, forward temporaries
        blocks = sum(x[3:4] == [name] for x in listed)
        assert blocks and [int(x[6]) for x in report if x[:1] == [name]] == [blocks], (name, blocks)


def test_parts_have_other_statistics(record, tool):
    """Batch normalization computes with all rows at once."""
    said = tool.json("advise", record("normed"))["look_at"], tool.json("report", record("normed"))["summary"]
    assert "(return self.net(x)" in said[0] and not any("at a time" in str(x) for x in said)


def test_a_padded_mask_of_attention_is_not_kept_on_the_host(record, tool):
    assert findings(tool, record("aligned"), "offload_activations") and not findings(tool, record("padded"), "offload_activations")


def test_copies_that_state_dict_makes_are_weights(record, tool):
    blocks = [b["category"] for b in tool.json("live", record("copies"), "--at", "end")["blocks"] if b["size"] == 512 * 512 * 4 and b["category"] != "workspace"]
    assert sorted(blocks) == ["gradients"] * 8 + ["parameters"] * 16


def test_weights_from_a_file_are_weights_though_they_are_soon_gone(record, tool):
    blocks = tool.json("live", record("loaded"), "--at", "peak")["blocks"]
    assert [b["category"] for b in blocks if b["size"] == 512 * 512 * 4 and b["category"] != "workspace"] == ["parameters"] * 16


def holders(tool, path):
    said = tool.json("oom", path)
    return said, {h["class"]: h for h in reversed(said["holders"])}


def test_the_inputs_of_a_call_are_not_of_earlier_calls(record, tool):
    said, by_class = holders(tool, record("calls", "mine=300MiB"))
    assert said["step"] == 2 and by_class["inputs"]["bytes"] > 100 << 20 and not by_class["inputs"]["earlier_bytes"]


def test_a_conversion_of_what_the_script_computed_is_no_input(record, tool):
    _, by_class = holders(tool, record("computed", "mine=330MiB"))
    assert by_class["inputs"]["bytes"] == 96 << 20 and by_class["unknown"]["bytes"] >= 96 << 20


@pytest.mark.parametrize("how", ["nodes", "pictures"])
def test_rows_of_a_matrix_need_not_be_samples(record, tool, how):
    half = next(r for r in tool.json("oom", record(how, "mine=400MiB"))["remedies"] if r["name"] == "smaller_batch")
    assert ("or make samples smaller" in half["what"], half["enough"]) == (how == "nodes", how == "pictures")


def test_gradients_that_are_asked_for_are_not_added_up(record, tool):
    half = next(r for r in tool.json("oom", record("asked", "mine=420MiB"))["remedies"] if r["name"] == "smaller_batch")
    assert "accumulate" not in half["what"]


def test_results_of_many_passes_without_tags(record, tool):
    said, _ = holders(tool, record("validated", "mine=400MiB", "off"))
    assert said["cause"] == "retained_graph" and said["remedies"][0]["name"] == "let_go"


SNAPSHOT = """
import sys, torch
torch.cuda.memory._record_memory_history(stacks="python")
net = torch.nn.Sequential(*[m for _ in range(12) for m in (torch.nn.Linear(512, 512), torch.nn.Mish())]).cuda()
try:
    for _ in range(2):
        y = net(torch.rand(4096, 512, device="cuda"))
        torch.nn.functional.pad(y, (0, int(sys.argv[2]))).square().sum().backward()
finally:
    torch.cuda.memory._dump_snapshot(sys.argv[1])
"""


@pytest.fixture
def snapshot(tmp_path):
    def write(card, padding):
        done = Programs(tmp_path, forks=True)("-c", SNAPSHOT, tmp_path / "x.pickle", padding, traced=False, card=card)
        assert ("OutOfMemoryError" in done.stderr) == ("=" in card), done.stderr[-2000:]
        return tmp_path / "x.pickle"
    return write


def test_a_workspace_of_backward_without_its_stack_is_no_gradient(snapshot, tool):
    blocks = tool.json("live", snapshot("h100-80g", 0), "--at", "end")["blocks"]
    assert {b["category"] for b in blocks if b["size"] == 32 << 20 and not b["stack"]} == {"workspace"}
    assert sum(b["category"] == "gradients" for b in blocks) == 24


def test_what_waits_for_the_first_backward_pass_is_activations(snapshot, tool):
    said, by_class = holders(tool, snapshot("mine=800MiB", 8192))
    assert said["phase"] == "backward" and by_class["activations"]["bytes"] > 90 << 20 and "forward_temporaries" not in by_class


def remedies(tool, path):
    return {r["name"]: r for r in tool.json("oom", path)["remedies"]}


def saved(tool, record, before, after):
    """What the change saves, measured."""
    peaks = [tool.json("report", record(how))["devices"][0]["peak_bytes"] for how in (before, after)]
    return peaks[0] - peaks[1]


def test_pieces_of_a_sum_that_is_kept_would_stay(record, tool):
    said = remedies(tool, record("joined", "mine=330MiB"))
    assert "results_on_host" in said and "in_pieces" not in said


def test_gradients_of_models_that_are_kept_are_cleared_too(record, tool):
    said = findings(tool, record("searched"), "idle_gradients")
    does = saved(tool, record, "searched", "zeroed")
    assert said and 0.85 * does <= said[0]["saves_bytes"] <= does, (said, does)


def test_growth_with_each_trial_is_not_growth_with_each_step(record, tool):
    assert "a step on average, from step" in tool("leaks", record("searched"))


def test_outputs_of_many_calls_do_not_grow_with_the_batch(record, tool):
    path = record("layerwise", "mine=490MiB")
    said = tool.json("oom", path)
    host = remedies(tool, path)["results_on_host"]
    assert host["saves_bytes"] == 15 * 4096 * 512 * 4 and "outputs of earlier calls" in host["how_known"]
    assert all(r["saves_bytes"] < 100 << 20 for r in said["remedies"] if r["name"] == "smaller_batch") and said["cause"] != "batch_too_large"


def test_what_a_running_function_holds_stays_on_the_device(record, tool):
    """At the refusal `held`, `y` and the graph's tensors are there; save_on_cpu moves those that no variable holds."""
    path = record("branches", "mine=480MiB")
    said = remedies(tool, path)["offload_activations"]
    assert "Tensors that running functions hold stay on the device" in said["how_known"]
    rows = {v["name"]: v["bytes"] for v in tool.json("oom", path)["variables"]}
    activations = sum(h["bytes"] for h in tool.json("oom", path)["holders"] if h["class"] == "activations")
    assert rows["held"] == rows["y"] == 32 << 20 and said["saves_bytes"] <= activations - 2 * (32 << 20)


def test_a_tensor_beside_the_call_need_not_be_its_input(record, tool):
    said, does = findings(tool, record("sums"), "checkpoint")[0], saved(tool, record, "sums", "sums_again")
    assert said["least_bytes"] - (1 << 20) <= does <= said["saves_bytes"] + (1 << 20) and said["least_bytes"] < said["saves_bytes"]


def test_graphs_of_passes_before_the_training_are_named(record, tool):
    assert "Results of 12 of them" in " ".join(tool("leaks", record("encoded")).split())
    assert "Results of" not in tool("leaks", record("encoded_once"))


def test_growth_that_starts_again_is_growth(record, tool):
    said = tool("leaks", record("epochs"))
    assert "and is freed at times" in said and "Graphs of earlier steps are kept" in " ".join(said.split())
    assert "no line holds more with each step" in tool("leaks", record("epochs_of_numbers"))


def test_of_two_lines_that_hold_as_much_neither_is_most_of_it(record, tool):
    assert " and " in (said := " ".join(tool("leaks", record("pairs")).split()).split("in between, ")[1].split(". If")[0]) and "most of it" not in said
    assert "in between, most of it" in " ".join(tool("leaks", record("pairs_of_one")).split())


def test_copies_of_the_state_are_state(record, tool):
    """A set of them was taken for copies of weights, because the sizes are the same."""
    both, weights = (tool.json("peak", record(how), "--top", "0")["categories"] for how in ("stored", "stored_weights"))
    assert both["parameters"] == weights["parameters"] and both["optimizer_state"] == 2 * weights["optimizer_state"]
    assert not findings(tool, record("stored"), "idle_weights")


def test_what_only_copies_read_is_not_moved_back_before_a_pass(record, tool):
    assert not findings(tool, record("stored_twice"), "idle_weights")
