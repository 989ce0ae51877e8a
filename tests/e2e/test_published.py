# SPDX-License-Identifier: Apache-2.0
"""The published accounts of training memory come out of recordings of the scripts they are about. Expected
figures are those of the publications, by hand, or PyTorch's own: at every mark of every script each block is
compared with its snapshot."""
import json

import pytest

from conftest import check_marks, with_more

pytestmark = pytest.mark.forks

MIB = 2**20


def record(programs, tool, case, *args, card="h100-80g", timeout=600):
    (programs.folder / "run.gmt").unlink(missing_ok=True)
    recording = programs.traced("published.py", "truth.json", case, *args, card=card, timeout=timeout)
    truth = json.loads((programs.folder / "truth.json").read_text())
    check_marks(tool, recording, truth)
    return recording, truth


class Account:
    def __init__(self, tool, recording, *options):
        self.all = tool.json("account", recording, *options)
        self.rows = {(r["section"], r["key"]): r for r in self.all["rows"]}
        self.text = tool("account", recording, *options)
        assert max(map(len, self.text.splitlines())) < 80

    def measured(self, section, key):
        return self.rows[section, key]["measured"]

    def formula(self, section, key):
        return self.rows[section, key]["formula"]

    def shape(self, name):
        return self.all["shape"][name]["value"]


# The article's figures: the model 2 GB, an input 200 MB, an output 1 GB.
MODEL, INPUT, OUTPUT = 2_000_200_000, 200_000_000, 1_000_000_000


def teaching(programs, tool, how):
    """Bytes at each mark, and the addresses that tensors had at them."""
    recording, truth = record(programs, tool, "teaching", how)
    bytes_ = {"%s#%d" % (m["name"][5:], m["time"]): m["devices"][0]["allocated"] for m in truth["marks"]}
    return recording, bytes_, {"%s#%d" % (m["name"][5:], m["time"]): m.get("address") for m in truth["marks"]}


def check_teaching(tool, recording, bytes_, expected):
    for name, sum_ in expected.items():
        # cuBLAS has its workspaces, blocks are rounded
        assert sum_ <= bytes_[name] <= sum_ + 40 * MIB, name
        assert tool.json("live", recording, "--at", "mark:mark_" + name)["bytes"] == bytes_[name]


def test_teaching_example(programs, tool):
    """Step by step: what is held, and by what: the first input lives on while the output's graph needs it."""
    recording, bytes_, addresses = teaching(programs, tool, "grad")
    check_teaching(tool, recording, bytes_, {
        "model#1": MODEL,
        "inputs#1": MODEL + INPUT, "outputs#1": MODEL + INPUT + OUTPUT,
        "inputs#2": MODEL + 2 * INPUT + OUTPUT, "outputs#2": MODEL + INPUT + OUTPUT,
        "inputs#3": MODEL + 2 * INPUT + OUTPUT, "outputs#3": MODEL + INPUT + OUTPUT})
    peak = tool.json("report", recording)["devices"][0]["peak_bytes"]
    assert MODEL + 2 * INPUT + 2 * OUTPUT <= peak <= MODEL + 2 * INPUT + 2 * OUTPUT + 40 * MIB
    first = addresses["inputs#1"]
    held = {b["addr"]: b for b in tool.json("live", recording, "--at", "mark:mark_inputs#2")["blocks"]}
    assert held[first]["size"] == INPUT
    assert "saved" in tool("why", recording, first, "--at", "mark:mark_inputs#2")
    gone = {b["addr"] for b in tool.json("live", recording, "--at", "mark:mark_outputs#2")["blocks"]}
    assert first not in gone
    assert tool.json("steps", recording)["peak"]["text"].startswith("step 2, forward, linear (teaching published.py:")
    head = tool("report", recording).split("\n\n")[0]
    assert "simulated h100-80g" in head and "3 steps in " in head


def test_teaching_example_without_gradients(programs, tool):
    """Under no_grad the first input goes as soon as its name is used again, and is never saved."""
    recording, bytes_, addresses = teaching(programs, tool, "no_grad")
    check_teaching(tool, recording, bytes_, {
        "inputs#1": MODEL + INPUT, "outputs#1": MODEL + INPUT + OUTPUT,
        "inputs#2": MODEL + INPUT + OUTPUT, "outputs#2": MODEL + INPUT + OUTPUT})
    why = tool.json("why", recording, addresses["inputs#1"], "--at", "mark:mark_outputs#1")["evidence"]
    assert "is saved" not in why and "saved for backward" not in why
    said = tool.json("steps", recording)
    assert (said["basis"], said["steps"]) == ("forward", 3)
    account = Account(tool, recording)
    assert not any("formula" in r for r in account.rows.values() if r["section"] == "peak")
    assert "formula" not in account.rows["parameters", "gradients"]


def transformer(programs, tool, layers, width, heads, batch, sequence, vocabulary, how, card="h100-80g"):
    recording, truth = record(programs, tool, "transformer", layers, width, heads, batch, sequence, vocabulary, how,
                              card=card)
    return Account(tool, recording, "--sequence", sequence, "--heads", heads), recording, truth["said"]


LAYER_ROWS = {"half": "per_layer", "half,flash": "per_layer_flash", "half,checkpoint": "per_layer_checkpointed"}


@pytest.mark.parametrize("how", LAYER_ROWS)
def test_activations_of_a_layer(programs, tool, how):
    """34 b s d + 5 b h s^2 with the scores kept, 34 b s d with flash attention, 2 b s d checkpointed."""
    layers, width, heads, batch, sequence = 6, 512, 8, 2, 512
    account, recording, said = transformer(programs, tool, layers, width, heads, batch, sequence, 1000, how)
    linear = 34 * batch * sequence * width
    square = 5 * batch * heads * sequence**2
    by_hand = {"half": linear + square, "half,flash": linear, "half,checkpoint": 2 * batch * sequence * width}[how]
    key = LAYER_ROWS[how]
    formula, measured = account.formula("activations", key), account.measured("activations", key)
    assert formula == by_hand
    assert "nearest" in account.rows["activations", key]["note"]
    # no dropout of the attention's result in the block with flash attention; blocks are rounded
    assert measured == pytest.approx(by_hand, rel=0.06)
    # what autograd's own hooks saw
    assert account.measured("activations", "total") == pytest.approx(said["kept"], rel=0.04)
    assert {n: account.shape(n) for n in ("layers", "width", "tokens", "batch", "activation_bytes")} == {
        "layers": layers, "width": width, "tokens": batch * sequence, "batch": batch, "activation_bytes": 2}
    check_tree(tool.json("modules", recording, "--at", "mark:mark_forward#2"))


def check_tree(tree):
    nodes = {n["id"]: n for n in tree["modules"]}
    block = next(n for n in nodes.values() if n["name"] == "Block")
    assert nodes[block["parent"]]["name"] == "Blocks" and nodes[block["parent"]]["parent"] == 0
    inside = [n for n in nodes.values() if n["parent"] == block["id"]]
    assert sum(n["bytes"] for n in inside) == block["bytes"]
    assert {n["line"] for n in inside if n["kind"] == "line"}
    assert sum(n["bytes"] for n in nodes.values() if not n["parent"]) + tree["outside_bytes"] == tree["bytes"]


def check_parameters(account, expected, rel):
    for key, each in zip(("parameters", "gradients", "optimizer_state", "sum"), (*expected, sum(expected))):
        assert account.measured("parameters", key) == pytest.approx(each, rel=rel), key
        assert account.formula("parameters", key) == pytest.approx(each, rel=1e-3), key


def test_mixed_precision_is_16_bytes(programs, tool):
    """Parameters 2, gradients 2, the 32-bit copy and two moments 12 bytes; twice 4, and 8 in 32 bits."""
    account, recording, said = transformer(programs, tool, 2, 2048, 16, 2, 64, 8000, "half")
    assert account.shape("parameters") == said["parameters"]
    assert tool.json("steps", recording)["steps"] == 2
    check_parameters(account, (2, 2, 12), 0.03)


def test_fragmentation(programs, tool):
    """More than 30 % of memory is free, and an allocation fails for want of one piece."""
    recording, truth = record(programs, tool, "fragmented", card="frag=3GiB")
    account = Account(tool, recording)
    row = account.rows["out_of_memory", "asked"]
    assert row["measured"] == 400 * MIB
    assert "not in one piece" in row["note"]
    free = account.measured("out_of_memory", "free")
    assert free > 0.3 * 3 * 2**30
    assert account.measured("out_of_memory", "largest_hole") < 20 * MIB
    reserved = tool.json("report", recording)["devices"][0]["peak_reserved_bytes"]
    assert free == pytest.approx(reserved - truth["said"], rel=0.1)
    assert tool.json("oom", recording)["cause"] == "fragmentation"


def test_qwen_of_a_large_batch(programs, tool):
    """16 x 256 tokens: highest at the logits, where forward turns into backward; 16 bytes a parameter."""
    recording, truth = record(programs, tool, "qwen", 16, 256)
    said, steps = truth["said"], tool.json("steps", recording)
    assert steps["steps"] == 3
    assert steps["peak"]["phase"] in ("forward", "backward")
    assert steps["peak"]["text"] == "step 2, backward, LogSoftmaxBackward0"
    rows = {(r["step"], r["phase"]): r for r in steps["rows"]}
    assert rows[2, "forward"]["peak_bytes"] > rows[2, "optimizer"]["peak_bytes"]
    account = Account(tool, recording)
    check_qwen(account, said, 16 * 256)
    assert account.measured("activations", "total") == pytest.approx(said["kept"], rel=0.005)
    # the rule, and what it leaves out: the gradients of the logits and of their logarithms
    logits = 16 * 256 * 151936 * 4
    assert account.measured("peak", "activations") > account.measured("peak", "update")
    assert account.measured("peak", "peak") == pytest.approx(account.formula("peak", "peak") + 2 * logits, rel=0.01)
    assert account.measured("residual", "temporaries") == pytest.approx(2 * logits, rel=0.01)


def test_qwen_of_a_small_batch(programs, tool):
    """2 x 256 tokens: highest in the optimizer step, in its temporaries; the rule says how high."""
    recording, truth = record(programs, tool, "qwen", 2, 256)
    said, steps = truth["said"], tool.json("steps", recording)
    assert steps["steps"] == 3
    assert steps["peak"]["text"] == "step %d, optimizer step, AdamW _foreach_sqrt" % steps["peak"]["step"]
    account = Account(tool, recording)
    check_qwen(account, said, 2 * 256)
    assert account.measured("peak", "activations") < account.measured("peak", "update")
    assert account.measured("peak", "peak") == pytest.approx(account.formula("peak", "peak"), rel=0.01)
    assert account.measured("peak", "optimizer_temporaries") == pytest.approx(4 * said["parameters"], rel=0.01)
    # the first step's forward and backward have no optimizer state yet
    rows = {(r["step"], r["phase"]): r for r in steps["rows"]}
    growth = rows[2, "forward"]["peak_bytes"] - rows[1, "forward"]["peak_bytes"]
    assert growth == pytest.approx(8 * said["parameters"], rel=0.01)


def check_qwen(account, said, tokens):
    assert account.shape("parameters") == said["parameters"]
    assert account.shape("layers") == 28 and account.shape("width") == 1536
    assert account.shape("tokens") == tokens
    check_parameters(account, (4, 4, 8), 0.01)
    assert account.formula("activations", "per_token") == pytest.approx(4.6894e-4 * said["parameters"] + 1.8494e6, rel=1e-6)
    assert account.measured("activations", "per_token") == pytest.approx(1_524_297 + 151_936, rel=0.01)


XL = 48, 1600, 25, 32, 1000, 50257


@pytest.mark.parametrize("how", with_more(["half", "half,flash", "half,flash,checkpoint,flatten"], {"half,flash"}))
def test_gpt2_xl(programs, tool, how):
    """1.5 billion parameters: 24 GB against 3 GB of weights; activations 60 GB and more, the scores on top,
    8 to 9 GB with checkpointing; a flat 32-bit buffer of all gradients is 6 GB."""
    account, recording, said = transformer(programs, tool, *XL, how, card="big=400GiB")
    layers, width, heads, batch, sequence, _ = XL
    assert tool.json("steps", recording)["steps"] == 2
    assert account.shape("parameters") == said["parameters"] == pytest.approx(1.56e9, rel=0.01)
    assert account.shape("layers") == layers and account.shape("width") == width
    assert account.shape("tokens") == batch * sequence
    check_parameters(account, (2, 2, 12), 0.025)
    assert account.measured("peak", "parameters") == pytest.approx(3.1e9, rel=0.03)
    total, kept = account.measured("activations", "total"), account.measured("activations", "layers")
    assert total == pytest.approx(said["kept"], rel=0.01)
    linear = 34 * batch * sequence * width * layers
    square = 5 * batch * heads * sequence**2 * layers
    if "checkpoint" in how:
        assert 8e9 <= total <= 9e9
        assert kept == pytest.approx(2 * batch * sequence * width * layers, rel=0.03)
        rows = {(r["step"], r["phase"]): r for r in tool.json("steps", recording)["rows"]}
        flat = rows[1, "other"]["peak_bytes"] - rows[1, "other"]["end_bytes"]
        assert flat == pytest.approx(4 * said["parameters"], rel=0.01) == pytest.approx(6e9, rel=0.05)
    elif "flash" in how:
        assert total > 60e9
        assert kept == pytest.approx(linear, rel=0.02)
        assert account.formula("activations", "layers_flash") == linear
    else:
        assert kept == pytest.approx(linear + square, rel=0.02)
        assert account.formula("activations", "layers") == linear + square


def test_lora(programs, tool):
    """Gradients and optimizer state nearly vanish, activations stay."""
    measured = {}
    for adapt in ("adapters", "whole"):
        recording, truth = record(programs, tool, "lora", adapt)
        account, said = Account(tool, recording), truth["said"]
        assert account.shape("parameters") == pytest.approx(said["parameters"], rel=0.002)
        share = said["trained"] / said["parameters"]
        check_parameters(account, (4, 4 * share, 8 * share), 0.05 if adapt == "whole" else 0.1)
        shape = {"layers": 12, "width": 768, "heads": 12, "tokens": 1024}
        if adapt == "whole":  # frozen embeddings save no positions
            shape |= {"batch": 4, "sequence": 256}
            assert "nearest" in account.rows["activations", "per_layer_flash"]["note"]
        assert {n: account.shape(n) for n in shape} == shape
        assert account.measured("activations", "total") == pytest.approx(said["kept"], rel=0.01)
        measured[adapt] = {k: account.measured("peak", k) for k in ("optimizer_state", "update", "activations")}
    assert measured["adapters"]["optimizer_state"] < 0.01 * measured["whole"]["optimizer_state"]
    assert measured["adapters"]["update"] < 0.01 * measured["whole"]["update"]
    assert measured["adapters"]["activations"] > 0.75 * measured["whole"]["activations"]


def test_no_transformer(programs, tool):
    """A network of convolutions: what needs no shape is told, formulas of layers are not."""
    recording, truth = record(programs, tool, "convolutions")
    account, said = Account(tool, recording), truth["said"]
    assert account.shape("parameters") == said["parameters"]
    assert not {"layers", "width", "tokens"} & set(account.all["shape"])
    check_parameters(account, (4, 4, 4), 0.1)
    assert account.measured("activations", "total") == pytest.approx(said["kept"], rel=0.05)
    assert "no formula: " in account.rows["activations", "total"]["note"]
    assert not any("formula" in r for r in account.rows.values() if r["section"] == "activations")


def test_sharded_over_four_devices(programs, tool):
    """FSDP: 16 bytes a parameter divided by the devices, and a layer gathered in its turn."""
    done = programs("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4", programs.workload("published.py"),
                    "truth.%r.json", "sharded", 4, 2048, count=4, GPUMEMTRACE_OUTPUT="run.%r.gmt")
    assert done.returncode == 0, done.stderr[-3000:]
    for rank in range(4):
        truth = json.loads((programs.folder / f"truth.{rank}.json").read_text())
        recording, said = programs.folder / f"run.{rank}.gmt", truth["said"]
        check_marks(tool, recording, truth)
        account = Account(tool, recording)
        assert said["local"] == said["parameters"] / 4
        assert account.shape("parameters") == said["parameters"] and account.shape("shards") == 4
        assert account.shape("layers") == 4 and account.shape("width") == 2048
        check_parameters(account, (4, 4, 8), 0.06)
        assert account.formula("parameters", "whole") == 4
        assert account.measured("parameters", "whole") == pytest.approx(4, rel=0.06)
        classes = tool.json("report", recording)["devices"][0]["categories_at_peak"]
        layer = 12 * 2048**2 * 4
        assert classes["communication"] >= layer
