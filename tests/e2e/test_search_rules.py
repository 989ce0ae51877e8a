# SPDX-License-Identifier: Apache-2.0
"""The rules of a search that need no run (python/gpumemtrace/search): what "stable" means, on courses of peaks that are known to go on as
they do here; which ranks of a world run; how an answer that is cut, or mixed with other output, is received."""
import os
import subprocess

import pytest
import toy
from conftest import WHEEL

if WHEEL:
    pytest.skip("in a wheel these modules lie inside the tool", allow_module_level=True)
from gpumemtrace import _answer
from gpumemtrace.search import search_stable, search_world
from gpumemtrace.search.search_sets import Known, Learnt, Search
from gpumemtrace.search.search_stable import NOT_YET, RISES, STABLE, Unit, Wish
from gpumemtrace.search.search_trial import Trial

MIB, GIB, MOST = 1 << 20, 1 << 30, 20000
QUICK, MINUTE = Wish(2, 0), Wish(2, 60)
TAKES = os.path.join(toy.ROOT, "build/programs/takes")


def constant(i):
    return (100 + (20 if i else 0)) * MIB


def leak(i):
    return (100 + i) * MIB


def hidden_leak(i):  # below the peak of the first step
    return leak(i) if i else 300 * MIB


def late_leak(i):
    return leak(max(i - 40, 0))


def burst_leak(i):
    return leak(i // 30 * 30)


def saw(i):  # a collector of garbage: each tooth a little unlike the others
    return (100 + i % 37 * 10 + i // 37 * 7 % 5) * MIB


def saw_and_leak(i):
    return saw(i) + i * MIB // 4


def log_of_losses(i):
    return 100 * MIB + i * 512


def ends_growing(i):
    return leak(min(i, 200))


def by_length(i):  # of the batch, by chance
    return 100 * MIB + ((i * 2654435761 & 0xffffffff) >> 7) % 1000 * MIB // 10


def first_answer(peak, seconds, room, wish):
    """A judgement is asked for again and again, as a run that is watched asks, and the first one counts: what it says, when, by how much a
    unit raises the peak, and by how much the peak of all is above that of those seen."""
    units = [Unit(peak(i), seconds) for i in range(MOST)]
    for n in [*range(1, 100), *range(100, MOST, 50)]:
        seen = max(u.peak for u in units[:n])
        s = search_stable.judge(units[:n], 0, max(room - seen, 0), wish)
        if s.says:
            return s.says, n, s.each, max(u.peak for u in units[n - 1:]) - seen
    return NOT_YET, MOST, 0, 0


@pytest.mark.parametrize("peak", [constant, log_of_losses, saw, ends_growing, by_length])
def test_stable_peaks(peak):
    says, after, _, missed = first_answer(peak, 0.1, 20 * GIB, MINUTE)
    assert says == STABLE and missed < 20 * MIB and 600 <= after <= 3000


def test_how_much_is_seen():
    assert first_answer(constant, 0.1, GIB, QUICK)[1] == 5 == first_answer(constant, 40, GIB, MINUTE)[1]


@pytest.mark.parametrize("peak, each", [(leak, MIB), (burst_leak, MIB), (saw_and_leak, MIB / 4), (late_leak, MIB), (hidden_leak, MIB)])
def test_rising_peaks(peak, each):
    says, after, found, _ = first_answer(peak, 0.1, 200 * GIB, MINUTE)
    assert says == RISES and 0.9 * each <= found <= 1.1 * each and 1800 <= after <= 1900  # three minutes


def test_a_rise_against_the_card():
    """It is followed where memory runs out soon, and not called stable where it does so late."""
    assert first_answer(leak, 0.1, 200 * GIB, QUICK)[:2] == (RISES, 32)
    assert first_answer(hidden_leak, 0.1, 200 * GIB, QUICK)[0] == RISES == first_answer(leak, 0.1, 2 * GIB, QUICK)[0]
    assert first_answer(leak, 0.1, 2 * GIB, MINUTE)[:2] == (NOT_YET, MOST)
    assert first_answer(log_of_losses, 0.1, GIB // 8, MINUTE)[0] == RISES
    assert search_stable.ends_after(60, MIB, 40 * MIB) == 100 and search_stable.ends_after(60, 0, 40 * MIB) == 0
    assert search_stable.matters(60, 1000) and not search_stable.matters(60, 5_000_000)


def test_what_starts_the_wait_anew():
    units, wish = [Unit(MIB, 0.1)] * 12, Wish(4, 0)

    def says(count, since):
        return search_stable.judge(units[:count], since, GIB, wish).says
    assert (says(8, 0), says(8, 6), says(10, 6), says(0, 0)) == (STABLE, NOT_YET, STABLE, NOT_YET)  # 6: memory ran out
    units[6] = Unit(MIB, 30)  # it compiled something
    assert (says(10, 0), says(11, 0)) == (NOT_YET, STABLE)


@pytest.mark.parametrize("text, size, ranks, node", [
    ("512", 512, [0, 256, 511], 8), ("16", 16, [], 8), ("4:3,0,3", 4, [0, 3], 4), (None, 0, [], 0), ("64:5", 64, [5], 8)])
def test_ranks_of_a_world(text, size, ranks, node):
    w = search_world.parse(text, {})
    assert (w.size, w.ranks, w.node) == (size, ranks, node)


@pytest.mark.parametrize("text", ["", "0", "-1", "4:", "4:4", "4:1,", "x", "4:1;2", "9:0,1,2,3,4,5,6,7,8", "1048577"])
def test_what_is_no_world(text):
    with pytest.raises(_answer.Sentence) as caught:
        search_world.parse(text, {})
    assert caught.value.code == 2


# A stand-in for Python, which answers on descriptor 3.
HELLO, LINE, END = """printf '{"begun": true}\\n' >&3; """, """printf '{"line": [0, "one"]}\\n' >&3; """, """printf '{"end": {"code": 0}}\\n' >&3"""


@pytest.mark.parametrize("does, code, says", [
    (HELLO + LINE + END, 0, ""), ("exit 1", 2, "the runs are started by Python 3.9 or later, and neither python3 nor python on the PATH is that"),
    (HELLO + LINE, 3, "ended with code 0 before the answer of the search was complete"),
    (HELLO + "echo no memory left >&2; exit 1", 3, "ended with code 1 before the answer of the search was complete: no memory left"),
    (HELLO + "kill -KILL $$", 3, "was ended by signal 9"), (HELLO + "echo hello >&3; " + END, 3, "the answer of the search in python3 cannot be read"),
    (HELLO + LINE + "printf '{\"line\": [0, \"tw' >&3", 3, "the answer of the search in python3 cannot be read"),
    (HELLO + "printf '{}\\n' >&3; " + END, 3, "cannot be read"),
    (HELLO + """printf '{"error": [2, "so it is"]}\\n' >&3""", 2, "so it is"),
])
def test_answers_of_another_process(does, code, says, tmp_path):
    subprocess.run(["make", "-s", "build/programs/takes"], cwd=toy.ROOT, check=True)
    for name in ("python3", "python"):
        (tmp_path / name).write_text(f"#!/bin/bash\ncat >/dev/null\n{does}\n")
        (tmp_path / name).chmod(0o755)
    env = {k: v for k, v in os.environ.items() if not k.startswith("GPUMEMTRACE_")}
    done = subprocess.run([toy.TOOL, "fit", "--", TAKES], env={**env, "PATH": f"{tmp_path}:/bin:/usr/bin"}, capture_output=True, text=True, timeout=600)
    assert done.returncode == code and says in done.stderr and done.stderr.count("\n") == (1 if code else 0), done.stderr
    assert done.stdout in ("", "one\n")


def test_a_change_that_finds_nothing_is_not_tried_in_smaller_parts():
    search = Search(None, None, 6, known={frozenset(): Known(None, 0, 0, 0, {"batch=1/2": 3, "batch=1/4": 4, "batch=1/8": 4, "save_on_cpu": 5})})
    search.learn(Trial(None, None, (), "", "", {"exit_code": 0, "not_made": {"batch=1/4": "no DataLoader gave batches of enough rows"}}))
    assert search.candidates() == ["save_on_cpu", "batch=1/2"]


def test_a_place_is_tried_once():
    saves = {"del=train.py:3": 9, "del=app/train.py:3": 8, "del=app/train.py:4": 7, "del=other.py:5": 6, "kept=train.py:3": 5, "checkpoint=Block": 4, "checkpoint=Block/2": 3}
    search = Search(None, None, 6, known={frozenset(): Known(None, 0, 0, 0, saves)})
    assert search.candidates() == ["del=app/train.py:3", "del=app/train.py:4", "del=other.py:5", "kept=train.py:3", "checkpoint=Block", "checkpoint=Block/2"]


def test_workspaces_that_advise_leaves_out():
    """Of a run in which they are a small part of the peak."""
    workspaces, small = "cublas_workspace=:4096:2", frozenset({"state_on_cpu"})
    known = {frozenset(): Known(None, 900, 0, 0, {workspaces: 48}), small: Known(None, 760, 0, 0, {}), frozenset({"batch=1/2"}): Known(None, 400, 0, 0, {workspaces: 48}, {workspaces: "3"})}
    search = Search(None, None, 6, known=known)
    assert search.predict(small | {workspaces}) == (712, 760) and search.predict(small) == (760, 760)


def test_what_one_card_teaches_another_knows():
    """The rows of batches that the program makes itself, and a change that the program fails with."""
    learnt = Learnt(broken=[frozenset({"kept=train.py:3"})])
    for _ in range(2):
        search = Search(None, None, 6, learnt, known={frozenset(): Known(None, 0, 0, 0, {"batch=1/2": 3, "batch=1/4": 4, "kept=train.py:3": 5})})
        search.learn(Trial(None, None, (), "", "", {"exit_code": 0, "not_made": {"batch=1/2": ""}, "instead": {"batch=1/2": "batch=1/2@16"}}))
        assert search.candidates() == ["kept=train.py:3", "batch=1/4@16", "batch=1/2@16"]
        assert search.is_meant(["batch=1/2@16"]) and not search.is_meant(["batch=1/2@16", "kept=train.py:3"])
        assert not search.is_meant(["batch=1/2@16", "optimizer=in_backward"])
