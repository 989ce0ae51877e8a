# SPDX-License-Identifier: Apache-2.0
"""Remedies applied from outside: is the peak as `advise` predicts, is what `oom` calls enough enough (tests/remedies). A few of them;
`make test-conclusions` has all."""
import re
import subprocess
import sys

import pytest

from conftest import BUILD, REAL, ROOT

sys.path.insert(0, str(ROOT / "tests/remedies"))

import ended_early  # noqa: E402
import known_changes  # noqa: E402
import try_remedies  # noqa: E402

pytestmark = [pytest.mark.forks, pytest.mark.skipif(REAL or not (BUILD / "libsimgpu.so").exists(), reason="for the simulated device")]
# program: kinds that are found in it and take effect
PROGRAMS = {"future/teacher": {"checkpoint", "idle_weights"}, "advise/evaluation_with_graphs": {"no_grad"}, "advise/running_total": {"kept"},
            "advise/adapters_in_float32": {"checkpoint"}}  # a result that the line of the next call saves


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_peak_is_as_predicted(tmp_path, name):
    recording = try_remedies.record(name, try_remedies.programs()[name], tmp_path)
    found = [pair for pair in try_remedies.findings(name, recording) if pair[1]["kind"] in PROGRAMS[name]]
    assert {finding["kind"] for _, finding in found} == PROGRAMS[name]
    rows = [row for pair in found for row in try_remedies.predicted(*pair, {})]
    assert [(row["kind"], row.get("off", row.get("why"))) for row in rows if row.get("off", 1) > try_remedies.NEAR] == []


def test_what_is_enough_makes_room(tmp_path):
    rows = list(try_remedies.made_room("future/teacher", try_remedies.record("future/teacher", try_remedies.programs()["future/teacher"], tmp_path), tmp_path,
                                       shares=(0.9,), most_remedies=2))
    assert [row for row in rows if row.get("passed")] and [row for row in rows if row.get("passed") is False] == []


def test_what_workspaces_give_up(tmp_path):
    """`oom` says so many bytes of a Llama of transformers: those that its workspaces are smaller by with the setting."""
    name = "fit/llama-keep-grads"
    refused = try_remedies.record(name, try_remedies.programs()[name], tmp_path, card="mine=814MiB")
    (remedy,) = [r for r in try_remedies.ask("oom", refused)["remedies"] if r["name"] == "less_workspace"]
    applied, *_ = try_remedies.run(name, try_remedies.as_finding(remedy), tmp_path, "mine=814MiB")
    before, after = [sum(b["size"] for b in try_remedies.ask("live", path, "--at", "oom")["blocks"] if b["category"] == "workspace") for path in (refused, applied)]
    assert before - after == remedy["saves_bytes"] > 0


def test_a_recording_that_ends_early(programs, tool):
    subprocess.run(["make", "-C", ROOT, "-s", f"{BUILD.name}/data/cut"], check=True)
    said = ended_early.judge_program("two_players", programs.traced(ROOT / "tests/future/loops.py", "two_players"), 2)
    assert len(said) > 10 and [claim for claim in said if not claim[4]] == []


def test_a_known_change_is_named(tmp_path):
    """Of a program with a teacher, whose weights get no gradient; nothing is said of the same program twice."""
    changes = {"again": set(), "fused": {"line"}, "autocast": {"casts"}, "twice_the_layers": {"model"}}
    name = "future/teacher"
    (tmp_path / "changes").mkdir()
    known_changes.run_all([name], tmp_path, ["unchanged", *changes])
    for changed, causes in changes.items():
        pair = [known_changes.changed_at(tmp_path, name, x) for x in ("unchanged", changed)]
        for old, new in pair, pair[::-1]:
            found = [*known_changes.judge_pair(old, new, known_changes.CHANGES[changed], changed == "again")]
            assert [x for x in found if x[1] in ("false", "missed")] == []
            assert causes <= {kind for kind, *_ in found} and (found or not causes)


def test_no_kind_that_is_often_wrong_is_said():
    rows = re.findall(r'\{ "(\w+)", (\d+), (\d+) \}', (ROOT / "viewer/advise/measured.def").read_text())
    assert rows and [kind for kind, right, tried in rows if int(right) < 0.9 * int(tried)] == []
