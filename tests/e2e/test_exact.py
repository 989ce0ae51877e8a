# SPDX-License-Identifier: Apache-2.0
"""Real PyTorch training, compared with what PyTorch says of its own memory: exactly, at marks."""
import json

import pytest

from conftest import check_marks, with_more

pytestmark = pytest.mark.plain

CAPS = {
    "default": {},
    "expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "split128": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128"},
}


def trained(programs, tool, *cases, **env):
    recording = programs.traced("train.py", "truth.json", *cases, **env)
    truth = json.loads((programs.folder / "truth.json").read_text())
    check_marks(tool, recording, truth)
    return recording, truth


@pytest.mark.real
@pytest.mark.parametrize("cases", [["gpt2", "qwen2"], ["bert", "lora"], ["vit", "resnet"]], ids="-".join)
def test_models(programs, tool, cases):
    trained(programs, tool, *cases)


@pytest.mark.real
@pytest.mark.matrix
def test_plain_models(programs, tool):
    trained(programs, tool, "lstm", "unet:amp", "blocks", "checkpointed", "checkpointed_reentrant")


@pytest.mark.real
@pytest.mark.matrix
@pytest.mark.parametrize("settings", with_more(["expandable", "split128"], {"split128"}))  # test_reserved has it, of smaller models
def test_allocator_settings(programs, tool, settings):
    trained(programs, tool, "blocks", "unet:amp", "lstm", **CAPS[settings])


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.matrix
def test_compiled(programs, tool):
    trained(programs, tool, "compiled")


def reserved_at(events, name, time):
    """Bytes reserved by the allocator's last report before a mark."""
    seen = reserved = 0
    for e in events:
        if e.get("kind") == "range_begin" and e.get("name") == name:
            seen += 1
            if seen == time:
                return reserved
        elif e.get("kind") in ("block_alloc", "block_free"):
            reserved = e["arg1"]
    raise KeyError(name)


@pytest.mark.real
@pytest.mark.parametrize("settings", CAPS)
def test_reserved(programs, tool, settings):
    recording, truth = trained(programs, tool, "mlp", "blocks", **CAPS[settings])
    events = tool.events(recording)
    for mark in truth["marks"][:-1]:
        assert reserved_at(events, mark["name"], mark["time"]) == mark["devices"][0]["reserved"]
