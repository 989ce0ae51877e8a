# SPDX-License-Identifier: Apache-2.0
"""Random calls of the runtime and the driver (pools, arrays, physical memory, contexts, resets, managed and pinned memory,
wrong frees) by a program with its own account: recordings say the same, bounded or not."""
import subprocess

import pytest

from conftest import BUILD, ROOT, with_more

CALLS = 1_200_000  # a bounded recording of them is thinned


@pytest.fixture(scope="module")
def account():
    subprocess.run(["make", "-s", "build/programs/own_account"], cwd=ROOT, check=True)
    return BUILD / "programs/own_account"


@pytest.mark.parametrize("bound", ["0", "4MiB"])
@pytest.mark.parametrize("seed", with_more(range(1, 13), range(2, 13)))
def test_the_program_s_own_account(tool, account, tmp_path, seed, bound):
    path = tmp_path / "run.gmt"
    done = subprocess.run([BUILD / "gpumemtrace", "run", "--sim", "h100-80g", "-o", path, "--", "env", f"GPUMEMTRACE_MAX_SIZE={bound}", account,
                           str(seed), str(CALLS)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = [line.split() for line in done.stdout.splitlines()]
    (peak, peak_blocks), = ((int(a), int(b)) for what, a, *b_ in said if what == "peak" for b in b_)
    (end,) = (int(line[1]) for line in said if line[0] == "end")
    left = {int(line[1], 16): int(line[2]) for line in said if line[0] == "left"}

    report = tool.json("report", path)
    (device,) = report["devices"]
    assert (device["peak_bytes"], device["end_bytes"], report["dropped"]) == (peak, end, 0)
    at_peak = tool.json("live", path)
    assert (at_peak["bytes"], len(at_peak["blocks"])) == (peak, peak_blocks)
    at_end = tool.json("live", path, "--at", "end")
    assert at_end["bytes"] == end
    assert left.items() <= {b["addr"]: b["size"] for b in at_end["blocks"]}.items()
    assert report["allocs"] - report["frees"] == len(at_end["blocks"])
    meta = tool.json("info", path)["meta"]
    assert ("thinned.events" in meta) == (bound != "0")
