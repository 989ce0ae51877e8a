# SPDX-License-Identifier: Apache-2.0
"""What `oom` says of settings of PyTorch's allocator, against the same program run with them: the request is granted or
refused, and the bytes to spare or lacking are right to the allocator's pages, on a card smaller or larger by them."""
import os

import pytest

from conftest import REAL, with_more

pytestmark = [pytest.mark.forks, pytest.mark.skipif(REAL, reason="for a simulated device of a chosen size")]
MIB = 1 << 20
EXPANDABLE, SPLIT = "expandable_segments:True", "max_split_size_mb:128"
LAST = {"varied_batches", "other_stream", "holes", "caught"}  # the request is the one that takes most of the card
EDGES = {"holes"}  # bytes are tried for these, and by `make reliability` for all
LONG = bool(os.environ.get("GPUMEMTRACE_TEST_LONG"))
PAGE = 20  # MiB, of what an expandable segment grows by
TRIED = {EXPANDABLE, SPLIT}

# program: MiB that it has of the card, and what is said of settings
CASES = {
    "varied_batches": (1600, {EXPANDABLE: "stays", SPLIT: "fits"}),
    "growing_sequences": (2050, {EXPANDABLE: "fits"}),
    "other_stream": (1200, {EXPANDABLE: "fits"}),
    "graph_pool": (1980, {}),
    "holes": (1750, {EXPANDABLE: "fits"}),
    "pinned_segments": (1750, {EXPANDABLE: "stays", SPLIT: "stays"}),
    "caught": (1750, {EXPANDABLE: "fits"}),
    "held": (1650, {}),
    "large_batch": (3000, {}),
    "limited": (1750, {}),
}


def card(mib):
    """A small simulated card gives an eighth of itself to the context."""
    return "card=%dMiB" % next(t for t in range(mib // 2 * 2, 2 * mib, 2) if t - t // 16 * 2 >= mib)


class Kind:
    """One program: at which of its requests memory runs out, by card and setting."""

    def __init__(self, programs, tool, name):
        self.programs, self.tool, self.name = programs, tool, name

    def refused(self, mib, conf=None, **env):
        env |= {"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {}
        (self.programs.folder / "run.gmt").unlink(missing_ok=True)
        done = self.programs("refused_kinds.py", self.name, card=card(mib), GPUMEMTRACE_OUTPUT="run.gmt", **env)
        assert done.returncode in (0, 3), done.stderr[-2000:]
        asked = [e["kind"] for e in self.tool.events(self.programs.folder / "run.gmt") if e.get("kind", "").startswith("block_")]
        return [i for i, kind in enumerate(asked) if kind == "block_oom"]

    def outcome(self, first, mib, conf):
        """Beside the run that was explained."""
        *before, at = first
        new = next((i for i in self.refused(mib, conf) if i not in before), at + 1)
        return "fits" if new > at else "stays" if new == at else "earlier"


@pytest.mark.parametrize("name", with_more(CASES, {"other_stream", "caught", "pinned_segments"}))
def test_a_run_with_the_setting_agrees(programs, tool, name):
    kind, (mib, expected) = Kind(programs, tool, name), CASES[name]
    first = kind.refused(mib)
    said = tool.json("oom", programs.folder / "run.gmt")
    text = " ".join(tool("oom", programs.folder / "run.gmt").split())
    settings = {s["alloc_conf"]: s for s in said["settings"]}
    verdicts = {c: "fits" if s["fits"] else "earlier" if s["earlier"] else "stays" for c, s in settings.items()}
    assert {c: v for c, v in verdicts.items() if c in TRIED} == expected
    check_words(said, text, settings)
    for conf, verdict in expected.items():
        assert kind.outcome(first, mib, conf) == verdict, conf
        if name not in EDGES and not LONG:
            continue
        if verdict == "fits" and name in LAST:
            spare = settings[conf]["spare_bytes"] // MIB
            assert kind.outcome(first, mib - spare, conf) == "fits"
            assert kind.outcome(first, mib - spare - PAGE - 2, conf) != "fits"
        elif verdict != "fits":
            lacking = -(-settings[conf]["lacking_bytes"] // MIB)
            assert kind.outcome(first, mib + lacking, conf) == "fits"
            assert kind.outcome(first, mib + lacking - 2, conf) != "fits"


@pytest.mark.parametrize("name, helps", [("workspace_alone", True), ("workspace_inside", False)])
def test_smaller_workspaces_agree(programs, tool, name, helps):
    kind = Kind(programs, tool, name)
    (first,) = kind.refused(420)
    said = tool.json("oom", programs.folder / "run.gmt")
    (remedy,) = [r for r in said["remedies"] if r["name"] == "less_workspace"]
    assert remedy["saves_bytes"] > said["asked_bytes"] and remedy["enough"] == helps
    assert (kind.refused(420, CUBLAS_WORKSPACE_CONFIG=":4096:2") > [first]) == helps


def check_words(said, text, settings):
    """A remedy is what fits; what everybody tries first is named where it does not help."""
    proposed = [r for r in said["remedies"] if "PYTORCH_CUDA_ALLOC_CONF" in r["what"]]
    fits = [s for s in said["settings"] if s["fits"]]
    assert [r["name"] for r in proposed] == ["allocator"] * len(fits)
    if fits:
        assert fits[0]["alloc_conf"] + ": the request fits" in proposed[0]["what"] and proposed[0]["enough"]
        assert proposed[0]["saves_bytes"] > fits[0]["spare_bytes"]
    helps = settings.get(EXPANDABLE, {"fits": True})["fits"]
    assert ("expandable_segments:True would not help" in text) == (not helps)
