# SPDX-License-Identifier: Apache-2.0
"""Training steps are found by themselves in loops as people write them."""
import pytest

# case: what a step is known by, how many, how often each phase comes in the second
CASES = {
    "gan": ("optimizer", 3, {"backward": 3, "optimizer": 2}),
    "gan_fused": ("optimizer", 3, {"backward": 3, "optimizer": 2}),
    "one_after_the_other": ("optimizer", 3, {"forward": 1, "backward": 1, "optimizer": 2}),
    "hooks": ("optimizer", 3, {"forward": 1, "backward": 1, "optimizer": 1}),
    "by_hand": ("backward", 3, {"forward": 1, "backward": 1}),
    "accumulation": ("optimizer", 3, {"forward": 4, "backward": 4, "optimizer": 1, "zero_grad": 1}),
    "profiled": ("profiler", 3, {"backward": 2, "optimizer": 2}),
    "inference": ("forward", 4, {"forward": 1}),
}


def check(tool, recording, case):
    basis, count, times = CASES[case]
    said = tool.json("steps", recording)
    assert (said["basis"], said["steps"]) == (basis, count)
    rows = {(r["step"], r["phase"]): r for r in said["rows"]}
    assert {p: rows[2, p]["times"] for p in times} == times
    device = tool.json("report", recording)["devices"][0]
    assert said["peak"]["bytes"] == device["peak_bytes"] == max(r["peak_bytes"] for r in rows.values())
    whole = [r for r in said["rows"] if r["phase"] in ("setup", "step", "after")]
    assert sum(r["growth_bytes"] for r in whole) == device["end_bytes"]
    for n in range(1, count + 1):
        inner = [r for r in said["rows"] if r["step"] == n and r["phase"] != "step"]
        assert sum(r["growth_bytes"] for r in inner) == rows[n, "step"]["growth_bytes"]
        assert max(r["peak_bytes"] for r in inner) == rows[n, "step"]["peak_bytes"]
    return said


@pytest.mark.parametrize("case", CASES)
def test_loops(programs, tool, case):
    said = check(tool, programs.traced("steps.py", case), case)
    if case == "one_after_the_other":
        assert said["peak"]["text"].endswith("optimizer step, AdamW _foreach_sqrt")


def test_without_tags(programs, tool):
    """By ranges, frames and the names of threads alone."""
    check(tool, programs.traced("steps.py", "gan", GPUMEMTRACE_TAGS="off"), "gan")
