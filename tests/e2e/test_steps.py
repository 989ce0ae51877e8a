# SPDX-License-Identifier: Apache-2.0
"""Training steps are found by themselves in loops as people write them."""
import pytest
from conftest import with_more

pytestmark = pytest.mark.forks

# case: what a step is known by, how many, how often each phase comes in the second
CASES = {
    "gan": ("optimizer", 3, {"backward": 3, "optimizer": 2}),
    "gan_fused": ("optimizer", 3, {"backward": 3, "optimizer": 2}),
    "one_after_the_other": ("optimizer", 3, {"forward": 1, "backward": 1, "optimizer": 2}),
    "hooks": ("optimizer", 3, {"forward": 1, "backward": 1, "optimizer": 1}),
    "by_hand": ("backward", 3, {"forward": 1, "backward": 1}),
    "asked": ("backward", 3, {"forward": 1, "backward": 2}),
    "forces": ("optimizer", 3, {"forward": 2, "backward": 2, "optimizer": 1, "zero_grad": 1}),
    "accumulation": ("optimizer", 3, {"forward": 4, "backward": 4, "optimizer": 1, "zero_grad": 1}),
    "closure": ("optimizer", 3, {"forward": 1, "zero_grad": 1, "backward": 1, "optimizer": 1}),
    "profiled": ("profiler", 3, {"backward": 2, "optimizer": 2}),
    "validated": ("optimizer", 3, {"forward": 1, "backward": 1, "optimizer": 1, "evaluation": 1}),
    "warmed_up": ("optimizer", 6, {"forward": 1, "backward": 1, "optimizer": 1}),
    "two_lines": ("optimizer", 5, {"forward": 1, "backward": 1, "optimizer": 1}),
    "second_stage": ("optimizer", 6, {"forward": 1, "backward": 1, "optimizer": 1}),
    "inference": ("forward", 4, {"forward": 1}),
    "paused_often": ("optimizer", 33, {"forward": 1, "backward": 1, "optimizer": 1}),
    "paused_stateless": ("optimizer", 33, {"forward": 1, "backward": 1, "optimizer": 1}),
    "paused_gan": ("optimizer", 8, {"forward": 2, "backward": 2, "optimizer": 2}),
    "closure_batch": ("optimizer", 6, {"forward": 1, "backward": 1, "optimizer": 1}),
    "paused_closure": ("optimizer", 6, {"forward": 1, "backward": 1, "optimizer": 1}),
}


def check(tool, recording, case):
    basis, count, times = CASES[case]
    said = tool.json("steps", recording)
    assert (said["basis"], said["steps"], said["at_least"]) == (basis, count, False)
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
    check_classes(tool, recording, said, not case.startswith("paused"))
    return said


def check_classes(tool, recording, said, timed):
    """The classes at each step's peak sum up to it, and are those that `live` gives for that moment (in a pause
    many events have one time)."""
    report = tool.json("report", "--steps", recording)
    whole = [r for r in said["rows"] if r["phase"] in ("setup", "step", "after")]
    assert [(s["step"], s["peak_bytes"], s["peak_at"]) for s in report["steps"]] == [
        (r["step"], r["peak_bytes"], r["peak_at"]) for r in whole]
    for step in report["steps"]:
        assert sum(step["categories_at_peak"].values()) == step["peak_bytes"]
        blocks = tool.json("live", recording, "--at", step["peak_time_ns"])["blocks"]
        classes = {b["category"] for b in blocks}
        if step["step"] and timed:  # what is outside of steps may be highest before its first event
            assert step["categories_at_peak"] == {
                c: sum(b["size"] for b in blocks if b["category"] == c) for c in classes}
    text = tool("report", "--steps", recording)
    assert text.count("step %d" % said["steps"]) >= 1 and "at the peak of" in text
    assert not [line for line in text.split("Where next")[0].splitlines() if len(line) > 80 and "Next: gpumemtrace" not in line]


@pytest.mark.parametrize("case", with_more(CASES, {"closure_batch", "gan_fused", "paused_closure", "paused_gan", "two_lines"}))
def test_loops(programs, tool, case):
    said = check(tool, programs.traced("steps.py", case), case)
    if case == "validated":
        assert said["peak"]["phase"] == "evaluation"
        peaks = {(r["step"], r["phase"]): r["peak_bytes"] for r in said["rows"]}
        assert [step for step, phase in peaks if phase == "evaluation"] == [2, 3]
        assert peaks[3, "forward"] < peaks[2, "evaluation"], "its last pass is none of the training"
    if case == "one_after_the_other":
        assert said["peak"]["text"].endswith("optimizer step, AdamW _foreach_sqrt")


def test_steps_that_a_pause_hides(programs, tool):
    recording = programs.traced("steps.py", "paused_inference")
    said = tool.json("steps", recording)
    assert (said["basis"], said["steps"], said["at_least"]) == ("forward", 6, True)
    text = tool("steps", recording)
    assert "at least 6 steps" in text and "Part of the run was paused" in text


def test_evaluation_at_the_end_without_tags(programs, tool):
    said = tool.json("steps", programs.traced("steps.py", "validated", GPUMEMTRACE_TAGS="off"))
    assert (said["basis"], said["steps"]) == ("optimizer", 3)
    assert said["rows"][-1]["phase"] == "after" and said["rows"][-1]["peak_bytes"] == said["peak"]["bytes"]


def test_without_tags(programs, tool):
    """By ranges, frames and the names of threads alone."""
    check(tool, programs.traced("steps.py", "gan", GPUMEMTRACE_TAGS="off"), "gan")
