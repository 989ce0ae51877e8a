# SPDX-License-Identifier: Apache-2.0
"""`advise`: what it promises is what the same program needs with the advice followed; all pairs are in tests/advise."""
import sys

import pytest

from conftest import BUILD, REAL, ROOT

sys.path.insert(0, str(ROOT / "tests/advise"))
import table  # noqa: E402

EXAMPLE = ROOT / "tests/data/example/new.gmt"
simulated = pytest.mark.skipif(REAL or not (BUILD / "libsimgpu.so").exists(), reason="for the simulated device")


@simulated
@pytest.mark.parametrize("kind, name, error", [("checkpoint", "checkpoint_gpt", 0.02), ("set_to_none", "zeroed_gradients", 0),
                                               ("late_del", "held_outputs", 0)])
def test_the_promise_holds(tmp_path, kind, name, error):
    before, finding, measured = table.judge("cases", kind, name, tmp_path)
    slack = error * before["peak_bytes"] + 512 * 4
    assert finding["least_bytes"] - slack <= measured <= finding["saves_bytes"] + slack
    assert finding["exact"] == (finding["least_bytes"] == finding["saves_bytes"])
    assert finding["peak_bytes"] == before["peak_bytes"] - finding["saves_bytes"]


def test_the_document(tool):
    answer = tool.json("advise", EXAMPLE)
    assert answer["peak_bytes"] == tool.json("report", EXAMPLE)["devices"][0]["peak_bytes"]
    savings = [f["saves_bytes"] for f in answer["findings"]]
    assert savings == sorted(savings, reverse=True) and savings[-1] >= answer["peak_bytes"] // 100
    for finding in answer["findings"]:
        assert finding["what"] and finding["evidence"] and finding["how_known"] in ("computed", "replayed", "run")
        assert finding["least_bytes"] <= finding["saves_bytes"] <= answer["peak_bytes"]


def test_what_it_is_asked_of(tool):
    tool("advise", code=2)
    tool("advise", EXAMPLE, "--", "true", code=2)
    tool("advise", EXAMPLE, "--try", "batch=4", code=2)
    tool("advise", "--try", "batch", "--", "true", code=2)
    tool("advise", ROOT / "README.md", code=3)
