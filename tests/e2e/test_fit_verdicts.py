# SPDX-License-Identifier: Apache-2.0
"""`gpumemtrace fit` on a few of the programs of docs/fit.md, one or two of each kind: its verdict is what the program run to its end
on the same card shows. All of them: tests/fit/table.py."""
import concurrent.futures
import sys

import pytest
import toy
from conftest import with_more

sys.path.insert(0, f"{toy.ROOT}/tests/fit")
import verdict as judge  # noqa: E402

PROGRAMS = judge.programs()


@pytest.mark.parametrize("name, mib, end", with_more([
    ("hard-examples", 3300, "does not fit"),  # a leak that begins after step 20
    ("replay-buffer", 2600, "fits"),
    ("second-model", 3600, "does not fit"),
    ("bad-record", 2600, "failed"),
    ("skips-long-batches", 3600, "fits"),
    ("gives-up-quietly", 4000, "does not fit"),
    ("mlp", 1300, "does not fit"),
    ("extension", 2300, "does not fit"),
], {"extension", "gives-up-quietly", "hard-examples", "mlp"}))  # a training that is too large: test_fit.py
def test_a_verdict_is_how_the_program_ends(name, mib, end):
    program, card = PROGRAMS[name], judge.card(mib * judge.MIB)
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        said = other.submit(judge.ask, toy.TOOL, program, card)
        assert judge.truth(program, judge.run(program, card)) == end
        said = said.result()
    assert judge.is_right(program, end, said), said


def test_the_rule_itself():
    """Which verdicts are right, for each kind of program and each end: "fits" never is where the program fails."""
    def right(traits, end, to_end=True, rising=1):
        program = judge.Program("", "", [], traits=set(traits))
        return {v for v in judge.EXIT if judge.is_right(program, end, judge.Said(v, to_end, rising))}
    for end in ("fits", "does not fit", "failed"):
        assert right([], end) == right(["goes_on"], end) == {end}
    assert right(["leaks"], "fits") == {"fits", "not stable"}
    assert right(["leaks"], "fits", to_end=False) == right(["leaks"], "fits", rising=0) == {"not stable"}
    assert right(["leaks"], "does not fit") == right(["grows"], "does not fit") == {"not stable", "does not fit"}
    assert right(["grows"], "fits", to_end=False) == {"fits"} and right(["leaks"], "failed") == {"failed"}
    assert {p.kind for p in PROGRAMS.values()} == {*judge.KINDS, "training"} and len(PROGRAMS) >= 60
