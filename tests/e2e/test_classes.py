# SPDX-License-Identifier: Apache-2.0
"""The class of every block in what people train, against what the program knows itself: tests/classes/.

Collected only with GPUMEMTRACE_TEST_CLASSES=1 as long as the classifier does not reach these thresholds."""
import os
import sys
from pathlib import Path

import pytest

CLASSES = Path(__file__).resolve().parents[1] / "classes"
sys.path.insert(0, str(CLASSES))
if os.environ.get("GPUMEMTRACE_TEST_CLASSES") != "1":
    pytest.skip("set GPUMEMTRACE_TEST_CLASSES=1", allow_module_level=True)

import score  # noqa: E402

RIGHT = {"on": 0.995, "off": 0.95}
UNKNOWN = 0.005


def test_truth_is_true(programs):
    """Saved tensors as the truth reads them are those that autograd's own hooks know."""
    done = programs(str(CLASSES / "agree.py"), traced=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.split("\n")) == 4


@pytest.mark.slow
@pytest.mark.parametrize("tags", ["on", "off"])
@pytest.mark.parametrize("case", score.cases())
def test_case(case, tags, tmp_path):
    s = score.score(case, tags, keep=tmp_path)
    assert s["marks"] >= 7 and s["bytes"] > 500 << 20
    assert s["undecided_bytes"] < 0.02 * s["bytes"], s["wrong"]
    assert s["right"] >= RIGHT[tags], s["wrong"]
    if tags == "on":
        assert s["unknown"] < UNKNOWN, s["wrong"]
