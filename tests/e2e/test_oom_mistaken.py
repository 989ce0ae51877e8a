# SPDX-License-Identifier: Apache-2.0
"""What looks like something else where memory runs out: a pass that has saved nothing yet like an evaluation, a photograph of the validation
like a longer sample, data that are computed with like data that wait, gradients of weights like the batch, attention that is kept like
attention that a fused kernel does without, a call of another size like the first one. Beside each a program that is what it looks like."""
import pytest

pytestmark = pytest.mark.forks

PROGRAM = """
import sys, torch
from torch import nn
from torch.nn import functional as F
kind = sys.argv[1]
N = 256

class Degrees(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(N, N)
    def forward(self, x, edges):
        dense = torch.zeros(len(x), len(x), device="cuda")
        dense[edges[0], edges[1]] = 1
        degree = dense.sum(1)
        del dense
        return self.lin(x) * degree[:, None]

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.last = nn.Linear(N, N), None
    def forward(self, x):
        q = self.q(x)
        attn = (q @ q.transpose(1, 2)).softmax(-1)
        if kind == "maps":
            self.last = attn
        return attn @ x

class Songs(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv1d(1, 16, 5, padding=2), nn.Conv1d(16, 16, 5, padding=2)
    def forward(self, audio):
        return self.second(torch.tanh(self.first(audio) * 2))

class Organs(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, padding=1)
    def forward(self, x):
        return self.conv(x).relu()

def train(model, optimizer, *batch):
    loss = model(*batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

def batch(n):
    return torch.randn(n, N).cuda(), torch.randint(0, n, (2, 4 * n)).cuda()

if kind in ("degrees", "validated"):
    model = Degrees().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for n in (2000, 3000) + ((32000,) if kind == "degrees" else ()):
        train(model, optimizer, *batch(n))
    with torch.no_grad():
        model(*batch(32000))
elif kind == "photo":
    model = nn.Conv2d(3, 16, 3, padding=1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        images = torch.rand(4, 3, 128, 128).cuda()
        train(model, optimizer, images)
    with torch.no_grad():
        photo = torch.rand(1, 3, 512, 512).cuda()
        masks = F.interpolate(model(photo), (3500, 3500))
        quality = masks.sigmoid() * (masks > 0).float()
elif kind in ("spikes", "waiting"):
    rows = torch.rand(150000, 1024).cuda()
    def centres(x):
        return (2 * x @ x[:8].T).argmax(0)
    print(centres(rows) if kind == "spikes" else torch.rand(100000, 1024).cuda())
elif kind in ("wide", "narrow"):
    inputs, rows = (1500000, 4) if kind == "wide" else (3000, 4000)
    model = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 1 if kind == "wide" else 40000)).cuda()
    loss = model(torch.randn(rows, inputs).cuda()).mean() - model(torch.randn(rows, inputs).cuda()).mean()
    loss.backward()
elif kind in ("maps", "passing"):
    model = nn.Sequential(*(Attention() for _ in range(12))).cuda()
    with torch.no_grad():
        for n in (512, 4096) + ((14000,) if kind == "passing" else ()):
            model(torch.randn(2, n, N).cuda())
elif kind == "joined":
    model = nn.Linear(N, N)
    model.register_buffer("cache", torch.zeros(200_000_000))
    model.cuda()
    with torch.no_grad():
        for n in (2, 4, 60):
            parts = [row.cuda() for row in torch.zeros(n, 10000, N)]
            whole = torch.cat(parts)
            model(whole[:1])
elif kind == "fitted":
    data = torch.zeros(50000, N).cuda()
    weight = torch.zeros(N, 1, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for copies in (1, 1, 1, 40):
        rows = data * 2
        optimizer.zero_grad()
        (rows @ weight).sum().backward()
        optimizer.step()
        whole = data.repeat(copies, 1)
elif kind in ("windows", "window", "crops"):
    net = Organs().cuda()
    size = 1024 if kind == "crops" else 2048
    scans = torch.rand(8 if kind == "crops" else 1, 1, size, size).cuda()
    with torch.no_grad():
        rows = scans if kind == "crops" else torch.cat([w for row in scans.split(512, 2) for w in row.split(512, 3)])
        results = [net(part) for part in rows.split(4)]
        whole = torch.zeros(len(scans), 16, size, size, device="cuda")
        if kind == "window":
            net(rows)
elif kind == "queries":
    net = Organs().cuda().eval()
    query = net(torch.rand(1, 1, 2048, 2048).cuda()).mean()
    answer = net(torch.rand(1, 1, 2048, 2048).cuda()).mean()
elif kind in ("resumed", "freed", "apart"):
    def layers():
        return nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(8)))
    first = layers()
    optimizer = torch.optim.Adam(first.parameters())
    first(torch.zeros(2, 2048)).sum().backward()
    optimizer.step()
    torch.save({"model": first.state_dict(), "optimizer": optimizer.state_dict()}, "all.pt")
    torch.save(optimizer.state_dict(), "state.pt")
    model = layers().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    if kind == "apart":
        optimizer.load_state_dict(torch.load("state.pt", map_location="cuda"))
    else:
        checkpoint = torch.load("all.pt", map_location="cuda")
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        if kind == "freed":
            del checkpoint
    for step in range(3):
        train(model, optimizer, torch.randn(64, 2048).cuda())
elif kind in ("sampled", "trained"):
    model = nn.Sequential(*(m for _ in range(8) for m in (nn.Linear(N, N), nn.Tanh()))).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    def sample(x):
        return model(x)
    train(model, optimizer, torch.randn(100, N).cuda())
    if kind == "sampled":
        sample(torch.randn(200000, N).cuda())
    else:
        train(model, optimizer, torch.randn(200000, N).cuda())
elif kind in ("targets", "losses"):
    model = Organs().cuda()
    images = torch.rand(8, 1, 256, 256).cuda()
    out = model(images)
    if kind == "targets":  # of one image, after another
        boxes = torch.rand(8, 600, 1).cuda()
        anchors = torch.rand(1, 60000).cuda()
        for of_image in boxes:
            apart = (of_image - anchors).abs() + (of_image - anchors).square()
    else:
        loss = Organs().cuda()(out.flatten(0, 1)[:, None]).sin().cos().mean()
elif kind in ("encoded", "reference", "second", "going", "unrun"):
    def layers(n):  # of 16 MiB
        return nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(n)))
    def learn(model, sizes, read=lambda x: x):
        optimizer = torch.optim.Adam(model.parameters())
        for n in sizes:
            train(model, optimizer, read(torch.randn(n, 2048).cuda()))
        return optimizer
    if kind in ("encoded", "reference"):
        frozen = layers(20 if kind == "encoded" else 30).cuda()
        features = frozen(torch.randn(4, 2048).cuda())
        if kind == "reference":
            learn(layers(6).cuda(), (64, 8192), torch.no_grad()(frozen.forward))
        else:
            del frozen  # its weights stay for the graph of features
            learn(layers(6).cuda(), (64, 4096))
    else:
        first = layers(1 if kind == "unrun" else 8).cuda()
        optimizer = learn(first, (64, 64, 64))
        if kind == "second":
            del optimizer
        others = layers(20).cuda() if kind == "unrun" else None
        second = layers(40).cuda()
elif kind == "coarse":  # two passes before the first backward pass
    model = nn.Sequential(*(m for _ in range(8) for m in (nn.Linear(N, N), nn.Tanh()))).cuda()
    rays = torch.randn(60000, N).cuda()
    (model(rays).square().mean() + model(rays.flip(0)).square().mean()).backward()
else:
    model = Songs().cuda().eval()
    with torch.no_grad():
        for seconds in (10, 600):
            model(torch.zeros(1, 1, 32000 * seconds).cuda())
"""
CASES = {"degrees": 1500, "validated": 1500, "photo": 1500, "spikes": 1000, "waiting": 1000, "wide": 1100, "narrow": 1100,
         "maps": 1500, "passing": 1500, "songs": 2000, "joined": 1900, "fitted": 1000, "sampled": 1900, "trained": 1900, "coarse": 1300,
         "windows": 500, "window": 680, "crops": 1000, "queries": 800, "resumed": 900, "freed": 770, "apart": 770, "targets": 500, "losses": 500,
         "encoded": 1120, "reference": 1280, "second": 900, "going": 900, "unrun": 900}


def asked(programs, tool, kind):
    (programs.folder / "program.py").write_text(PROGRAM)
    done = programs(programs.folder / "program.py", kind, card=f"card={CASES[kind]}MiB", GPUMEMTRACE_OUTPUT="run.gmt")
    assert "OutOfMemoryError" in done.stderr, done.stderr[-2000:]
    said = tool.json("oom", programs.folder / "run.gmt")
    return said, {r["name"]: r for r in said["remedies"]}, " ".join(tool("oom", programs.folder / "run.gmt").split())


@pytest.mark.parametrize("kind", ["degrees", "validated"])
def test_a_pass_that_has_saved_nothing_yet(programs, tool, kind):
    said, _, text = asked(programs, tool, kind)
    if kind == "degrees":
        assert (said["step"], said["phase"]) == (3, "forward") and "No step had ended" not in text
    else:
        assert said["phase"] == "evaluation"


def test_a_photograph_of_the_validation_is_no_longer_sample(programs, tool):
    said, remedies, text = asked(programs, tool, "photo")
    assert "longer_samples" not in remedies and "(quality = masks.sigmoid()" in text


@pytest.mark.parametrize("kind", ["spikes", "waiting", "fitted"])
def test_data_that_are_computed_with(programs, tool, kind):
    said, remedies, _ = asked(programs, tool, kind)
    assert all(r["saves_bytes"] < 1 << 40 for r in said["remedies"])
    assert ("data_on_host" in remedies) == (kind == "waiting")


@pytest.mark.parametrize("kind", ["wide", "narrow"])
def test_gradients_of_weights_are_no_batch(programs, tool, kind):
    said, remedies, _ = asked(programs, tool, kind)
    made = said["categories"].get("backward_temporaries", 0)
    half = remedies.get("smaller_batch", {"saves_bytes": 0})["saves_bytes"]
    assert made > 300 << 20 and half < made / 2 if kind == "wide" else half > 300 << 20


@pytest.mark.parametrize("kind", ["maps", "passing"])
def test_attention_that_the_program_keeps(programs, tool, kind):
    _, remedies, text = asked(programs, tool, kind)
    assert ("fused_attention" in remedies) == (kind == "passing")
    assert ("many of its results are there at once" in text) == (kind == "maps")


def test_shapes_are_those_of_this_call(programs, tool):
    _, _, text = asked(programs, tool, "songs")
    assert "[1, 1, 19200000]" in text and "[1, 1, 320000]" not in text


def test_parts_that_are_joined(programs, tool):
    """Also where a smaller batch is said that is not enough."""
    said, remedies, text = asked(programs, tool, "joined")
    assert not any(r["enough"] for r in remedies.values()) and "(whole = torch.cat(parts)): while it runs, the parts and the whole are there at once" in text


@pytest.mark.parametrize("kind", ["windows", "window", "crops", "queries"])
def test_half_of_which_batch(programs, tool, kind):
    """Windows of one scan are no batch: their results are put together, however many are computed at a time."""
    _, remedies, text = asked(programs, tool, kind)
    half = remedies.get("smaller_batch")
    if kind == "windows":
        assert half is None
    elif kind == "window":
        assert half["saves_bytes"] <= 130 << 20 and "temporaries of this pass and of the request" in text
    elif kind == "crops":
        assert half["saves_bytes"] == 256 << 20 and "temporaries of this step" in text and "The script makes" in text and "Saves up to 528.0 MiB" in text
    else:
        assert "temporaries of all passes so far and of the request" in text


@pytest.mark.parametrize("kind", ["targets", "losses"])
def test_what_the_script_computes_might_not_be_of_the_batch(programs, tool, kind):
    """Beside modules it might be of one image of the batch: half the batch then saves less, or nothing, and is never said to be enough."""
    _, remedies, _ = asked(programs, tool, kind)
    half = remedies["smaller_batch"]
    assert (half["at_most"], half["enough"]) == ((True, False) if kind == "targets" else (False, True))


@pytest.mark.parametrize("kind", ["resumed", "freed", "apart"])
def test_state_that_a_checkpoint_holds(programs, tool, kind):
    """load_state_dict() shares the tensors of a checkpoint on its device: moving the state elsewhere frees nothing while that is held."""
    _, remedies, text = asked(programs, tool, kind)
    of_state = {"state_elsewhere", "state_in_8_bits", "shard_state"} & set(remedies)
    if kind == "resumed":
        assert next(iter(remedies)) == "loaded" and remedies["loaded"]["enough"] and not of_state
        assert "parameters 128.1 MiB" in text and "weights of a loaded checkpoint 128.1 MiB" in text
        assert "loaded" in {f["kind"] for f in tool.json("advise", programs.folder / "run.gmt")["findings"]}
    else:
        assert len(of_state) == 3 and "loaded" not in remedies and "loaded checkpoint" not in text
        assert text.count("Nothing else may hold the state that was read from a file") == 3
    assert remedies["shard"]["saves_bytes"] == pytest.approx(128 << 20, rel=0.01) and "Half of the parameters and gradients" in text


@pytest.mark.parametrize("kind", ["sampled", "trained"])
def test_samples_that_are_made_with_gradients(programs, tool, kind):
    """In the second step, by another function than the one whose passes backward reads: there is no loss yet, and perhaps never."""
    said, remedies, _ = asked(programs, tool, kind)
    assert said["cause"] == "batch_too_large" and ("accumulate" in remedies["smaller_batch"]["what"]) == (kind == "trained")
    assert ("offload_activations" in remedies) == (kind == "trained")
    if kind == "sampled":
        assert said["remedies"][0]["name"] == "no_grad" and "if no backward pass follows" in said["remedies"][0]["what"]


def test_what_waits_before_the_first_backward_pass(programs, tool):
    """Whether a backward pass follows is not known: a condition, but no silence."""
    said, remedies, _ = asked(programs, tool, "coarse")
    assert said["phase"] == "forward" and remedies["offload_activations"]["enough"]
    assert "if a backward pass follows (else under torch.no_grad())" in remedies["offload_activations"]["what"]


@pytest.mark.parametrize("kind", ["encoded", "reference", "second", "going", "unrun"])
def test_a_model_that_ran_before(programs, tool, kind):
    """Its weights are no part of the model that does not fit. A model that each step uses is, and so is one that has not run yet."""
    said, remedies, text = asked(programs, tool, kind)
    before = {"encoded": 320, "second": 256, "going": 512}.get(kind)  # MiB
    assert ("does not fit" in text or "alone fills" in text) == (before is None)
    assert said["cause"] == ("held_unused" if kind == "encoded" else "model_too_large")
    assert ("most of it last in step" in text or "not been used since step" in text) == (before is not None)
    assert ("held_unused" in remedies) == (kind in ("encoded", "second"))  # with its optimizer it may go on
    if kind == "encoded":
        assert said["step"] == 2 and remedies["held_unused"]["saves_bytes"] == pytest.approx(before << 20, rel=0.01)
        assert "delete the results of those passes too" in remedies["held_unused"]["how_known"]
    if "shard" in remedies:
        of_model = sum(said["categories"].get(c, 0) for c in ("parameters", "gradients", "optimizer_state"))
        assert remedies["shard"]["saves_bytes"] <= (of_model - (before or 0) * (1 << 20)) / 2 + (1 << 20)
