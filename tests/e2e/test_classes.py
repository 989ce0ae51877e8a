# SPDX-License-Identifier: Apache-2.0
"""The class of every block in what people train, against what the program knows itself: tests/classes/.

A third of the cases always runs, all of them with GPUMEMTRACE_TEST_CLASSES=1. `make test` records a case with tags or without, or both ways:
as a rule matters in it (MATTERS). The other way is run by `make test-matrix`."""
import json
import os
import sys
from pathlib import Path

import pytest
from conftest import with_more

CLASSES = Path(__file__).resolve().parents[1] / "classes"
sys.path.insert(0, str(CLASSES))

import score  # noqa: E402

RIGHT = {"on": 0.995, "off": 0.95}
# Without tags moments and weights of the script's own are alike: updates read both.
LESS = {("moments_by_hand", "off"): 0.65, ("state_moves", "off"): 0.8}
UNKNOWN = 0.005
ALWAYS = ("adamw", "averages", "bare_tensors", "beams", "checkpoint_reentrant", "closures", "contrast", "ddp_views", "ema",
          "fast_text", "fisher", "flat", "fused_tables", "generate", "handwritten", "kept_function", "kv_cache", "loaded_in_part", "lora", "moments_by_hand", "points",
          "recommender",
          "resume", "resume_on_device", "retained", "sharpness", "static_attributes", "static_cache", "style", "truncated", "weights_loaded")
CASES = score.cases() if os.environ.get("GPUMEMTRACE_TEST_CLASSES") == "1" else ALWAYS

# A rule that may be left out without harm would be no rule: case, tags, and rules whose absence the score must show. Those by uses are left
# out too, since they say the same where uses are recorded.
MATTERS = {
    ("adamw", "on"): ("state", "saved", "workspace"),
    ("averages", "on"): ("averages",),
    ("bare_tensors", "off"): ("gradient-life", "activation-life"),
    ("resume", "off"): ("state-frames",),
    ("bare_tensors", "on"): ("leaf", "gradient"),
    ("beams", "off"): ("cache-rows",),
    ("closures", "on"): ("copies", "update"),
    ("contrast", "on"): ("replaced-weight",),
    ("ddp_views", "on"): ("gradient-buckets",),
    ("fast_text", "on"): ("buffer-frames",),
    ("fisher", "on"): ("state-read",),
    ("flat", "off"): ("replaced-weight",),
    ("fused_tables", "on"): ("fused-state", "gradient-partition"),
    ("flat_moved", "off"): ("replaced-weight",),
    ("fsdp_offload", "on"): ("reduced",),
    ("generate", "on"): ("cache-life",),
    ("kv_cache", "on"): ("module-frames",),
    ("lora", "on"): ("module-frames",),
    ("moments_by_hand", "on"): ("state-used",),
    ("points", "off"): ("activation-script",),
    ("recommender", "on"): ("cleared",),
    ("resume", "on"): ("state-frames",),
    ("resume_on_device", "on"): ("state-loaded",),
    ("retained", "off"): ("activation-graph",),
    ("sharpness", "on"): ("replaced-weight",),
    ("static_cache", "on"): ("cache-frames",),
    ("static_attributes", "on"): ("cache-statement", "module-frames"),
    ("style", "off"): ("activation-result",),
    ("truncated", "off"): ("activation-result",),
    ("weights_loaded", "on"): ("weights-loaded",),
    ("whole_gradients", "off"): ("gradient-life",),
    ("wrapped_tensors", "on"): ("activation-life",),
}
# Cases without a rule of their own, and two common models without tags.
ALSO = {("checkpoint_reentrant", "off"), ("kept_function", "on"), ("ema", "off"), ("lora", "off")}
# Their rules matter in another case, too.
AGAIN = {("contrast", "on"), ("kv_cache", "on"), ("resume", "on"), ("sharpness", "on"), ("style", "off")}


def ways():
    for case in CASES:
        for tags in ("on", "off"):
            yield pytest.param(case, tags, marks=[] if (case, tags) in {*MATTERS, *ALSO} - AGAIN else pytest.mark.more)


def judge(case, tags, folder, again=False):
    return score.score(case, tags, keep=folder, again=again, timeout=400)


def test_truth_is_true(programs):
    """Saved tensors as the truth reads them are those that autograd's own hooks know."""
    done = programs(str(CLASSES / "agree.py"), traced=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.split("\n")) == 4


@pytest.mark.slow
@pytest.mark.parametrize("case, tags", list(ways()))
def test_case(case, tags, tmp_path, monkeypatch):
    monkeypatch.delenv("GPUMEMTRACE_TEST_WITHOUT_RULE", raising=False)
    s = judge(case, tags, tmp_path)
    assert s["marks"] >= 7 and s["bytes"] > 500 << 20
    assert s["undecided_bytes"] < 0.02 * s["bytes"], s["wrong"]
    assert s["right"] >= LESS.get((case, tags), RIGHT[tags]), s["wrong"]
    if tags == "on":
        assert s["unknown"] < UNKNOWN, s["wrong"]
    for rule in MATTERS.get((case, tags), ()):
        monkeypatch.setenv("GPUMEMTRACE_TEST_WITHOUT_RULE", ",".join({rule, "state-used", "state-read"}))
        assert judge(case, tags, tmp_path, again=True)["right"] < LESS.get((case, tags), RIGHT[tags]), rule


@pytest.mark.slow
@pytest.mark.parametrize("case", ["lora", *(pytest.param(c, marks=pytest.mark.more) for c in ("amp", "checkpoint", "frozen_tied", "gan", "peft"))])
def test_without_stacks(case, tmp_path):
    """What no module is known for is unknown, not a batch; frozen weights are weights all the same."""
    s = score.score(case, keep=tmp_path, stacks="none", timeout=400)
    assert s["right"] + s["unknown"] > 0.98, s["wrong"]
    assert s["right"] > 0.7, s["wrong"]


@pytest.mark.forks
@pytest.mark.parametrize("how", ["none", "zeros", "accumulate"])
@pytest.mark.parametrize("tags", with_more(["on", "off"], {"on"}))
def test_buckets_that_are_made_anew(tool, programs, how, tags):
    """Gradients lie in the last buckets; the first ones, which DDP still keeps, are communication."""
    done = programs("rebuilt_buckets.py", how, GPUMEMTRACE_OUTPUT="run.gmt", GPUMEMTRACE_TAGS=tags)
    steps = json.loads(done.stdout)
    assert not set(steps[0]) & set(steps[1])
    for i, storages in enumerate(steps, 1):
        blocks = tool.json("live", programs.folder / "run.gmt", "--at", f"mark:gradients are there#{i}")["blocks"]
        assert sorted(b["addr"] for b in blocks if b["category"] == "gradients") == storages
        assert [b["category"] for b in blocks if b["addr"] in steps[0]] == ["gradients" if i == 1 else "communication"]
