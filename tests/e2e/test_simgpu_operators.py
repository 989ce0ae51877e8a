# SPDX-License-Identifier: Apache-2.0
"""Values of small tensors: some 1,500 operator calls on the simulated device, in all common types, say what the CPU says."""
import json

import pytest

from conftest import BUILD, REAL

pytestmark = [pytest.mark.forks, pytest.mark.skipif(REAL or not (BUILD / "libsimgpu.so").exists(), reason="for the simulated device")]

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


@pytest.mark.matrix
def test_cards_that_this_torch_has_no_kernels_for(programs):
    """As on the real card: torch names its architectures, and the first kernel fails where none of them is the card's."""
    code = "import torch; print(torch.cuda.get_arch_list(), flush=True); print(torch.ones(4, device='cuda').sum().item())"
    for card, capability in (("v100-16g", "sm_70"), ("t4-16g", "sm_75"), ("b300-288g", "sm_100")):
        done = programs("-c", code, traced=False, card=card)
        has = capability in done.stdout
        assert (done.returncode, done.stdout.splitlines()[1:]) == ((0, ["4.0"]) if has else (1, [])), card
        assert ("no kernel image is available for execution on the device" in done.stderr) == (not has)
