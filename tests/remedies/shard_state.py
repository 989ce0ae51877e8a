# SPDX-License-Identifier: Apache-2.0
"""shard_state.py DONE PROGRAM [ARGUMENT...]: runs a program as one of two ranks that share the state of its optimizers: it updates its share
of the parameters, whole ones, the largest first to who has less. DONE has "1" once it did; no change of the product needs a second card."""
import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python/gpumemtrace"))

import torch  # noqa: E402
from changes.changes_places import around_steps, trained  # noqa: E402

taken, ranks, held = {}, {}, [0, 0]


def before(opt):
    for p in sorted(trained(opt), key=torch.numel, reverse=True):
        if p not in ranks:
            ranks[p] = held.index(min(held))
            held[ranks[p]] += p.numel()
        if ranks[p]:
            Path(done).write_text("1")
            taken[p], p.grad = p.grad, None


def after(opt):
    for p, grad in taken.items():
        p.grad = grad
    taken.clear()


done, *sys.argv = sys.argv[1:]
around_steps(before, after)
sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
runpy.run_path(sys.argv[0], run_name="__main__")
