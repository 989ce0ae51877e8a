# SPDX-License-Identifier: Apache-2.0
"""What `oom` says of a refusal beside the rest of the same run: tests/future/. A few programs; `make test-conclusions` has all."""
import re
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT, with_more

sys.path.insert(0, str(ROOT / "tests/future"))

import growth  # noqa: E402
import judge  # noqa: E402

pytestmark = pytest.mark.forks

POINTS = 3
# program: what is to be said somewhere in it
PROGRAMS = {
    "answers_before_the_update": {"checkpoint"},
    "contrast_in_the_loop": {"smaller_batch"},
    "evaluation_with_graphs": {"no_grad", "retained_graph"},
    "gradients_of_each_loss": {"step"},
    "kept_losses": {"retained_graph", "let_go"},
    "kept_outputs": {"kept_results"},
    "loss_in_parts": {"backward_each"},
    "micro_batches": {"smaller_batch"},
    "rollout_of_calls": {"batch_too_large"},
    "two_players": {"checkpoint"},
    "words_one_by_one": {"smaller_batch"},
}
HELD = {  # "": what looks the same and is needed
    "trials_in_a_log": "unused",
    "frozen_stem": "",
    "long_turns": "",
    "checkpoint_in_an_object": "held_unused",
    "kept_errors": "refused_attempts",
    "halved_batches": "refused_attempts",
    "scores_of_all_rows": "",
    "rows_on_the_device": "",
}


@pytest.fixture(scope="module")
def cut():
    subprocess.run(["make", "-C", ROOT, "-s", f"{BUILD.name}/data/cut"], check=True)
    return str(BUILD / "data/cut")


@pytest.mark.parametrize("name", with_more(PROGRAMS, {"contrast_in_the_loop", "gradients_of_each_loss", "micro_batches", "words_one_by_one"}))
def test_what_is_said_is_so(programs, cut, tool, name):
    recording = programs.traced(ROOT / "tests/future/loops.py", name)
    cuts, said = judge.judge(name, recording, POINTS)
    assert len(cuts) >= 3 * POINTS, cuts
    assert [claim for claim in said if claim[1] is False] == []
    assert PROGRAMS[name] <= {kind for kind, *_ in said}
    assert {so for kind, so, *_ in said if kind in ("step", "smaller_batch")} == {True} or name == "two_players"


# Programs, and the claim that would be false of each if graphs and gradients were guessed.
WITHOUT_TAGS = [
    ("advise/never activations_in_turn", "in_pieces"),  # what backward needs
    ("advise/never chunks_of_one_contrast", "retained_graph"),  # passes before their backward pass
    ("classes/case_accumulation", "set_to_none"),  # gradients that others are added to
    ("workloads/oom activation_spike truth", "model_too_large"),  # what the first backward pass has not freed yet
]


@pytest.mark.parametrize("program, kind", WITHOUT_TAGS)
def test_what_is_said_without_tags(programs, cut, program, kind):
    file, *arguments = program.split()
    recording = programs.traced(ROOT / f"tests/{file}.py", *arguments, TRUTH="truth")
    _, said = judge.judge(program, recording, 2 * POINTS, tags=False)
    assert [claim for claim in said if claim[1] is False] == [], kind
    assert len([claim for claim in said if claim[1]]) > 20


@pytest.mark.parametrize("name, kind", with_more(HELD.items(), {"halved_batches", "scores_of_all_rows"}))
def test_what_is_held_for_nothing(programs, cut, tool, name, kind):
    recording = programs.traced(ROOT / "tests/future/held.py", name)
    _, said = judge.judge(name, recording, POINTS)
    assert [claim for claim in said if claim[1] is False and claim[0] in {*HELD.values(), "smaller_batch"}] == []
    assert name != "rows_on_the_device" or max(int(words.split()[0]) for k, *_, words in said if k == "smaller_batch") <= 32  # not half of all rows
    assert {k for k, *_ in said} & {*HELD.values(), kind} - ({"held_unused"} - {kind}) == {kind} - {""}


@pytest.mark.more
def test_what_comes_back_after_a_pause(programs, cut, tool):
    # The first heads are trained again at the end. Until then nothing shows it, and the sentence says so.
    recording = programs.traced(ROOT / "tests/future/held.py", "heads_of_tasks")
    _, said = judge.judge("heads_of_tasks", recording, POINTS)
    assert {kind for kind, so, *_ in said if so is False} <= {"held_unused"}


@pytest.mark.parametrize("file, name, kinds", with_more([
    ("advise/cases", "fused_sgd", {"first_step", "foreach_off"}),  # its first step copies gradients and keeps the copies
    ("advise/never", "adapters_under_reentrant_checkpoints", {"idle_weights"}),  # backward takes what forward hid
    ("advise/cases", "held_outputs", {"late_del"}),  # results of a step that the next one holds
    ("advise/cases", "overlapping_steps", {"overlap"}),  # one is read behind its backward pass
    ("advise/cases", "rollouts_with_graphs", {"no_grad"}),  # the program holds the batches of the passes itself
    ("advise/never", "features_for_a_head", {"smaller_batch"}),  # passes without gradients are held, and then trained on
    ("future/held", "second_optimizer", {"first_step"}),  # state of a line that made none before
    ("future/held", "tied_weights", {"state_elsewhere"}),  # a copy for a weight that gets its first gradient late
    ("classes/case_lbfgs", None, {"smaller_batch"}),  # passes inside of the optimizer's step
    ("classes/case_optimizer_in_backward", None, {"smaller_batch"}),  # steps inside of the backward pass
], {"advise/never", "classes/case_lbfgs", "classes/case_optimizer_in_backward"}))
def test_what_is_so_only_in_its_place(programs, cut, tool, file, name, kinds):
    # On a whole card cuBLAS's own workspaces are more than these programs have.
    recording = programs.traced(ROOT / f"tests/{file}.py", *[name] * bool(name), TRUTH="truth", card="card=4GiB")
    _, said = judge.judge(name, recording, 40)
    assert [claim for claim in said if claim[1] is False] == []
    assert kinds <= {kind for kind, *_ in said}


@pytest.mark.parametrize("file, name, kind, said", [
    ("never", "halves_that_are_both_used", "no_grad", False),  # backward is at work, and comes to all passes
    ("never", "adapters_under_checkpoints", "no_grad", False),  # what a hook packs goes, and is computed again
    ("never", "contrast", "no_grad", False),  # saved twice, and still held
    ("never", "gradient_penalty", "in_pieces", True),  # in its first pass, a graph takes the result of one layer of two
    ("cases", "inference_with_graphs", "no_grad", True),
])
def test_what_a_graph_takes_or_lets_go(programs, cut, tool, file, name, kind, said):
    recording = programs.traced(ROOT / f"tests/advise/{file}.py", name)
    found = [claim for claim in judge.judge(name, recording, 8)[1] if claim[0] == kind]
    assert [claim for claim in found if claim[1] is False] == []
    assert bool(found) == said


@pytest.mark.parametrize("case, kind", with_more([("vqgan", "no_grad"), ("checkpoint", "no_grad"), ("kept_function", "no_grad"), ("resume", "idle_weights"),
                                                  ("surgery", "no_grad")], {"vqgan", "resume"}))  # surgery: its backward passes keep their graph
def test_before_every_network_had_its_turn(programs, cut, tool, case, kind):
    recording = programs.traced(ROOT / f"tests/classes/case_{case}.py", TRUTH=str(programs.folder / "truth.json"))
    said = judge.judge(case, recording, 20 if case == "checkpoint" else 8)[1]
    assert [claim for claim in said if claim[0] == kind and claim[1] is False] == []
    assert (kind in {k for k, *_ in said}) == (case == "kept_function")


@pytest.mark.parametrize("file, name, kinds", [
    ("future/loops", "kept_losses", {"growth", "line", "bytes a step"}),
    ("future/loops", "bounded_memory", {"growth", "no line grows"}),  # it grows until it is full
    ("future/held", "trials_in_a_log", {"unused"}),
])
def test_what_grows_goes_on(programs, cut, tool, file, name, kinds):
    _, said = growth.judge_program(name, str(programs.traced(ROOT / f"tests/{file}.py", name)), 4)
    assert [claim for claim in said if claim[1] is False and claim[0] != "bytes a step"] == []
    assert kinds <= {kind for kind, *_ in said}


def test_a_graph_that_backward_makes(programs, cut, tool):
    """Results that the program uses behind it are not said to be held for nothing."""
    recording = programs.traced(ROOT / "tests/advise/never.py", "gradient_penalty")
    _, said = judge.judge("gradient_penalty", recording, 40)
    assert {so for kind, so, *_ in said if kind in ("late_del", "overlap")} == {True}


def test_a_staged_refusal_reads_as_a_real_one(programs, cut, tool):
    recording = programs.traced(ROOT / "tests/future/loops.py", "teacher")
    seq, size = subprocess.run([cut, recording], check=True, capture_output=True, text=True).stdout.split()[-2:]
    subprocess.run([cut, recording, seq, programs.folder / "cut.gmt"], check=True)
    said = tool.json("oom", programs.folder / "cut.gmt")
    assert said["free_bytes"] < said["asked_bytes"] and said["block_bytes"] == int(size) and said["other_bytes"] == 0
    assert said["allocated_bytes"] + said["cached_bytes"] + said["library_bytes"] + said["context_bytes"] + said["free_bytes"] == said["total_bytes"]


def test_no_kind_that_is_often_wrong_is_said():
    rows = re.findall(r'\{ "(\w+)", (\d+), (\d+) \}', (ROOT / "viewer/oom/claims.def").read_text())
    assert rows and [kind for kind, right, of in rows if int(right) < 0.9 * int(of)] == []
