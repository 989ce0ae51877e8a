# SPDX-License-Identifier: Apache-2.0
"""A program that uses the package while it is recorded, and writes down what PyTorch says at each place."""
import json
import sys

sys.path.insert(0, sys.argv[1])
import gpumemtrace  # noqa: E402

gpumemtrace.mark("before the device")  # kept until the device is used
before = gpumemtrace.recording()

import torch  # noqa: E402

truth = {"before": before}


def note(place):
    blocks = [(b["address"], b["size"]) for s in torch.cuda.memory_snapshot() for b in s["blocks"] if b["state"] == "active_allocated"]
    truth[place] = sorted(blocks)
    gpumemtrace.mark(place)


def main():
    kept = [torch.ones(1000 * (i + 1), device="cuda") for i in range(4)]
    note("first")
    with gpumemtrace.paused():
        kept.append(torch.ones(1 << 20, device="cuda"))
        note("paused")
        with gpumemtrace.paused():
            del kept[0]
        kept.append(kept[0] * 2)

    @gpumemtrace.paused()
    def inside():
        return torch.ones(77777, device="cuda")

    kept.append(inside())
    kept.append(torch.ones(88888, device="cuda"))
    note("first")
    truth["recording"] = gpumemtrace.recording()
    truth["snapshots"] = [gpumemtrace.snapshot(), gpumemtrace.snapshot(sys.argv[2])]
    del kept[:]
    note("end")
    print(json.dumps(truth))


main()
