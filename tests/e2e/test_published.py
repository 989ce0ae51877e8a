# SPDX-License-Identifier: Apache-2.0
"""The published accounts of training memory come out of recordings of the scripts they are about. Expected
figures are those of the publications, by hand, or PyTorch's own."""
import json
import os

import pytest

heavy = pytest.mark.skipif(os.environ.get("GPUMEMTRACE_TEST_CLASSES") != "1", reason="set GPUMEMTRACE_TEST_CLASSES=1")
MIB = 2**20


def record(programs, case, *args, card="h100-80g", timeout=600):
    recording = programs.traced("published.py", "truth.json", case, *args, card=card, timeout=timeout)
    return recording, json.loads((programs.folder / "truth.json").read_text())


class Account:
    def __init__(self, tool, recording, *options):
        self.all = tool.json("account", recording, *options)
        self.rows = {(r["section"], r["key"]): r for r in self.all["rows"]}

    def measured(self, section, key):
        return self.rows[section, key]["measured"]

    def formula(self, section, key):
        return self.rows[section, key]["formula"]

    def shape(self, name):
        return self.all["shape"][name]["value"]


def sizes_at(tool, recording, mark):
    return tool.json("live", recording, "--at", mark)


# The article's figures: the model 2 GB, an input 200 MB, an output 1 GB.
MODEL, INPUT, OUTPUT = 2_000_200_000, 200_000_000, 1_000_000_000


def test_teaching_example(programs, tool):
    """Step by step: what is held, and by what: the first input lives on while the output's graph needs it."""
    recording, truth = record(programs, "teaching", "grad")
    expected = {
        "model#1": MODEL,
        "inputs#1": MODEL + INPUT, "outputs#1": MODEL + INPUT + OUTPUT,
        "inputs#2": MODEL + 2 * INPUT + OUTPUT, "outputs#2": MODEL + INPUT + OUTPUT,
        "inputs#3": MODEL + 2 * INPUT + OUTPUT, "outputs#3": MODEL + INPUT + OUTPUT,
    }
    workspace = 40 * MIB
    for name, bytes_ in expected.items():
        live = sizes_at(tool, recording, "mark:mark_" + name)
        # cuBLAS has its workspaces, blocks are rounded
        assert bytes_ <= live["bytes"] <= bytes_ + workspace, name
    peak = tool.json("report", recording)["devices"][0]["peak_bytes"]
    assert MODEL + 2 * INPUT + 2 * OUTPUT <= peak <= MODEL + 2 * INPUT + 2 * OUTPUT + workspace
    first = next(m for m in truth["marks"] if m["name"] == "mark_inputs")["address"]
    held = {b["addr"]: b for b in sizes_at(tool, recording, "mark:mark_inputs#2")["blocks"]}
    assert held[first]["size"] == INPUT
    why = tool("why", recording, first, "--at", "mark:mark_inputs#2")
    assert "saved" in why


def test_teaching_example_without_gradients(programs, tool):
    """Under no_grad the first input goes when its name is used again, and is never saved."""
    recording, truth = record(programs, "teaching", "no_grad")
    first = next(m for m in truth["marks"] if m["name"] == "mark_inputs")["address"]
    why = tool("why", recording, first, "--at", "mark:mark_inputs#1")
    assert "is saved" not in why and "saved for backward" not in why
    assert tool.json("steps", recording)["basis"] == "forward"
    assert tool.json("steps", recording)["steps"] == 3


def transformer(programs, tool, layers, width, heads, batch, sequence, vocabulary, how, card="h100-80g"):
    recording, truth = record(programs, "transformer", layers, width, heads, batch, sequence, vocabulary, how, card=card)
    return Account(tool, recording, "--sequence", sequence, "--heads", heads), recording, truth


@pytest.mark.parametrize("how", ["half", "half,flash", "half,checkpoint"])
def test_activations_of_a_layer(programs, tool, how):
    """34 b s d + 5 b h s^2 with the scores kept, 34 b s d with flash attention, 2 b s d checkpointed."""
    layers, width, heads, batch, sequence = 6, 512, 8, 2, 512
    account, recording, _ = transformer(programs, tool, layers, width, heads, batch, sequence, 1000, how)
    linear = 34 * batch * sequence * width
    square = 5 * batch * heads * sequence**2
    by_hand = {"half": linear + square, "half,flash": linear, "half,checkpoint": 2 * batch * sequence * width}[how]
    key = {"half": "per_layer", "half,flash": "per_layer_flash", "half,checkpoint": "checkpointed"}[how]
    formula, measured = account.formula("activations", key), account.measured("activations", key)
    if key == "checkpointed":
        formula, measured = formula / layers, measured / layers
    assert formula == by_hand
    # no dropout of the attention's result in the block with flash attention; blocks are rounded
    assert measured == pytest.approx(by_hand, rel=0.06)
    assert {n: account.shape(n) for n in ("layers", "width", "tokens", "batch", "activation_bytes")} == {
        "layers": layers, "width": width, "tokens": batch * sequence, "batch": batch, "activation_bytes": 2}
    tree = tool.json("modules", recording, "--at", "mark:mark_forward#2")
    nodes = {n["id"]: n for n in tree["modules"]}
    block = next(n for n in nodes.values() if n["name"] == "Block")
    assert nodes[block["parent"]]["name"] == "Blocks" and nodes[block["parent"]]["parent"] == 0
    inside = [n for n in nodes.values() if n["parent"] == block["id"]]
    assert sum(n["bytes"] for n in inside) == block["bytes"]
    assert {n["line"] for n in inside if n["kind"] == "line"}
    assert sum(n["bytes"] for n in nodes.values() if not n["parent"]) + tree["outside_bytes"] == tree["bytes"]


def test_mixed_precision_is_16_bytes(programs, tool):
    """Parameters 2, gradients 2, the 32-bit copy and two moments 12 bytes; twice 4, and 8 in 32 bits."""
    account, recording, truth = transformer(programs, tool, 2, 2048, 16, 2, 64, 8000, "half")
    assert account.shape("parameters") == truth["said"]
    assert tool.json("steps", recording)["steps"] == 2
    for key, each in (("parameters", 2), ("gradients", 2), ("optimizer_state", 12), ("sum", 16)):
        assert account.measured("parameters", key) == pytest.approx(each, rel=0.03), key
        assert account.formula("parameters", key) == each


def test_fragmentation(programs, tool):
    """More than 30 % of memory is free, and an allocation fails for want of one piece."""
    recording, truth = record(programs, "fragmented", card="frag=3GiB")
    account = Account(tool, recording)
    row = account.rows["out_of_memory", "asked"]
    assert row["measured"] == 400 * MIB
    assert row["note"].startswith("fragmentation")
    free = account.measured("out_of_memory", "free")
    assert free > 0.3 * 3 * 2**30
    assert account.measured("out_of_memory", "largest_hole") < 20 * MIB
    reserved = tool.json("report", recording)["devices"][0]["peak_reserved_bytes"]
    assert free == pytest.approx(reserved - truth["said"], rel=0.1)


@heavy
@pytest.mark.parametrize("batch,phase", [(16, "backward"), (2, "optimizer")])
def test_qwen(programs, tool, batch, phase):
    """A batch of 16 x 256 peaks at the logits, where forward turns into backward; 2 x 256 in the optimizer."""
    recording, truth = record(programs, "qwen", batch, 256)
    steps = tool.json("steps", recording)
    assert steps["steps"] == 3
    assert steps["peak"]["phase"] in ((phase, "forward") if batch == 16 else (phase,))
    assert steps["peak"]["step"] >= (1 if batch == 2 else 2)
    if batch == 2:
        assert steps["peak"]["text"] == "step %d, optimizer step, AdamW _foreach_sqrt" % steps["peak"]["step"]
    account = Account(tool, recording)
    assert account.shape("parameters") == truth["said"]
    assert account.shape("layers") == 28 and account.shape("width") == 1536
    assert account.shape("tokens") == batch * 256
    assert account.measured("parameters", "sum") == pytest.approx(16, rel=0.01)
    assert account.formula("activations", "per_token") == pytest.approx(4.6894e-4 * truth["said"] + 1.8494e6, rel=1e-6)
    update, activations = account.measured("peak", "update"), account.measured("peak", "activations")
    assert (activations > update) == (batch == 16)
    # the first step's forward and backward have no optimizer state yet
    rows = {(r["step"], r["phase"]): r for r in steps["rows"]}
    state = account.measured("peak", "optimizer_state")
    growth = rows[2, "forward"]["peak_bytes"] - rows[1, "forward"]["peak_bytes"]
    assert growth == pytest.approx(state, rel=0.05)


@heavy
@pytest.mark.parametrize("how", ["half,flash", "half,flash,checkpoint"])
def test_gpt2_xl(programs, tool, how):
    """1.5 billion parameters: 24 GB of state against 3 GB of weights; activations about 60 GB or more, and a
    fraction with checkpointing."""
    recording, truth = record(programs, "transformer", 48, 1600, 25, 32, 1000, 50257, how, card="big=400GiB")
    account = Account(tool, recording, "--sequence", 1000, "--heads", 25)
    assert tool.json("steps", recording)["steps"] == 2
    assert account.shape("parameters") == pytest.approx(1.56e9, rel=0.02)
    weights, state = account.measured("peak", "parameters"), account.measured("peak", "optimizer_state")
    assert weights == pytest.approx(3.1e9, rel=0.03)
    assert weights * 2 + state == pytest.approx(16 * account.shape("parameters"), rel=0.02)
    layers = account.measured("activations", "layers")
    if "checkpoint" in how:
        assert layers == pytest.approx(48 * 2 * 32 * 1000 * 1600, rel=0.03)
    else:
        assert layers > 60e9
        assert layers == pytest.approx(account.formula("activations", "layers_flash"), rel=0.05)


@heavy
def test_lora(programs, tool):
    """Gradients and optimizer state nearly vanish, activations stay."""
    recording, truth = record(programs, "lora")
    trained, all_ = truth["said"]
    account = Account(tool, recording, "--parameters", all_)
    share = trained / all_
    assert share < 0.01
    assert account.measured("parameters", "gradients") < 0.1
    assert account.measured("parameters", "optimizer_state") < 0.2
    assert account.measured("peak", "activations") > 20 * account.measured("peak", "update")
