# SPDX-License-Identifier: Apache-2.0
"""Programs of frameworks, unchanged: they end, and every block has its class (tests/frameworks). Here one whose packages
the main environment has; `make test-frameworks` runs all."""
import importlib.util
import sys
from pathlib import Path

import pytest

FRAMEWORKS = Path(__file__).resolve().parents[1] / "frameworks"
sys.path.insert(0, str(FRAMEWORKS))

spec = importlib.util.spec_from_file_location("frameworks_run", FRAMEWORKS / "run.py")
frameworks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(frameworks)


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
