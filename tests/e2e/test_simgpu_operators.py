# SPDX-License-Identifier: Apache-2.0
"""Values of small tensors: some 1,500 operator calls on the simulated device, in all common types, say what the CPU says."""
import json

import pytest

from conftest import BUILD, REAL

pytestmark = pytest.mark.skipif(REAL or not (BUILD / "libsimgpu.so").exists(), reason="for the simulated device")

# Compiled at run time, and whether for float16 or bfloat16 nothing says; a loss; sorts by a comparison of whole rows.
NOT_COMPUTED = ("prod float16", "prod bfloat16", "cross_entropy ", "unique dim", "mode")


@pytest.mark.matrix
def test_small_tensors_are_computed(programs):
    done = programs("operators.py", "operators.json", traced=False, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    said = json.loads((programs.folder / "operators.json").read_text())
    print("\n".join(f"{group:12} {right:4} of {n}" for group, (right, n) in sorted(said["table"].items())))
    assert sum(n for _, n in said["table"].values()) > 1500
    assert [b for b in said["bad"] if not b[1].startswith(NOT_COMPUTED)] == []
