# SPDX-License-Identifier: Apache-2.0
"""Programs of frameworks, unchanged: they end, and every block has its class (tests/frameworks). Here one whose packages
the main environment has; `make test-frameworks` runs all."""
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

FRAMEWORKS = Path(__file__).resolve().parents[1] / "frameworks"
sys.path.insert(0, str(FRAMEWORKS))

spec = importlib.util.spec_from_file_location("frameworks_run", FRAMEWORKS / "run.py")
frameworks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(frameworks)


def story(*blocks):
    """Allocations as (place, size, address), each followed by the mark's moment."""
    return [("block_alloc", 10 * i, addr, size, place) for i, (place, size, addr) in enumerate(blocks)]


def said(*blocks):
    """One line of truth after all blocks: of each its number, address and size, and its class."""
    return {"mark": "truth_forward", "device": 0, "allocs": len(blocks), "frees": 0,
            "blocks": [{"life": i, "addr": addr, "size": size, "classes": [cls]} for i, (addr, size, cls) in enumerate(blocks)]}


def carried(monkeypatch, first, second, line):
    monkeypatch.setattr(frameworks.match, "story", lambda recording, device: recording)
    lines, apart, differs = frameworks.match.carry_over([line], first, second)
    return [{b["addr"]: b["classes"][0] for b in line["blocks"]} for line in lines], apart, differs


def test_a_larger_cached_block_is_the_same(monkeypatch):
    first, second = story((1, 100, 5), (2, 600, 6)), story((1, 100, 7), (2, 700, 8))
    truth = said((5, 100, "inputs"), (6, 600, "activations"))
    assert carried(monkeypatch, first, second, truth) == ([{7: "inputs", 8: "activations"}], None, 0)


def test_threads_take_turns(monkeypatch):
    first, second = story((1, 100, 5), (1, 600, 6)), story((1, 600, 7), (1, 100, 8))
    truth = said((5, 100, "buffers"), (6, 600, "parameters"))
    assert carried(monkeypatch, first, second, truth) == ([{8: "buffers", 7: "parameters"}], None, 0)


def test_runs_part(monkeypatch):
    first, second = story((1, 100, 5), (2, 600, 6)), story((1, 100, 5), (3, 600, 6))
    assert carried(monkeypatch, first, second, said((5, 100, "inputs"), (6, 600, "activations"))) == ([], 1, 0)


def test_a_table_needs_a_document(tmp_path):
    """Known before the first program runs: one sentence."""
    for file, words in ((tmp_path / "none.md", "none.md cannot be read"), (FRAMEWORKS / "README.md", "README.md has no lines <!-- table -->")):
        done = subprocess.run([sys.executable, FRAMEWORKS / "run.py", "--table", file], capture_output=True, text=True, timeout=600)
        assert done.returncode == 2 and words in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["accelerate_shuffle"])
def test_program(name, tmp_path):
    if frameworks.missing(name):
        pytest.skip("no " + ", ".join(frameworks.missing(name)))
    s = frameworks.run(name, 1, tmp_path, ["on", "off"])
    assert not frameworks.short_of(s), s
    for j in s["judged"].values():
        assert j["marks"] >= 7 and j["bytes"] > 500 << 20
        assert j["undecided_bytes"] < 0.01 * j["bytes"] and j["differs"] < 0.001 * j["bytes"]
