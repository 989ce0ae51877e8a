# SPDX-License-Identifier: Apache-2.0
"""Memory runs out, the program catches it and trains on: every refusal is there, all stays exact."""
import json

import pytest

from conftest import blocks_of, check_marks

pytestmark = pytest.mark.forks


@pytest.mark.matrix
def test_caught_and_gone_on(programs, tool):
    recording = programs.traced("refused.py", "truth.json", card="tiny=2GiB")
    truth = json.loads((programs.folder / "truth.json").read_text())
    check_marks(tool, recording, truth)
    end = truth["marks"][-1]
    assert end["ooms"] == 4
    assert tool.json("report", recording)["devices"][0]["ooms"] == end["ooms"]
    refusals = [e for e in tool.events(recording) if e.get("kind") == "block_oom"]
    assert len(refusals) == 4
    assert all(e["stack"] for e in refusals)
    assert refusals[0]["size"] == 2 * tool_total(tool, recording)
    # what was held when it happened: PyTorch's own number, in our report of the refusal
    live = tool.json("live", recording, "--at", "oom")
    assert live["bytes"] == refusals[-1]["arg0"] == sum(size for _, size in blocks_of(live))


def tool_total(tool, recording):
    """The device's memory as the runtime told it."""
    return next(e["arg1"] for e in tool.events(recording) if e.get("kind") == "meminfo")
