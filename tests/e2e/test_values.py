# SPDX-License-Identifier: Apache-2.0
"""Values that the simulated device keeps, against the same program on the CPU; and those that it does not compute:
which lines read one to decide by it is known from the program itself."""
import json
import os
import re
import subprocess
import sys
import textwrap

import pytest

from conftest import BUILD

pytestmark = pytest.mark.skipif(not (BUILD / "libsimgpu.so").exists(), reason="built without CUDA headers")

KEPT = """
    import torch
    def same(a):
        assert torch.equal(a.cuda().cpu(), a), a.shape
        assert torch.equal(a.cuda().clone().cpu(), a), a.shape
    state = torch.get_rng_state()
    same(state)
    torch.Generator().set_state(state.cuda().cpu())
    edges = torch.randint(0, 5000, (2, 400000))
    same(edges)
    same(torch.randn(200, 300))
    g = torch.empty(1000, 1000, dtype=torch.int64, device="cuda")
    g.copy_(torch.arange(1000000).view(1000, 1000))
    assert g[500, 3].item() == 500003 and g[999].tolist()[-1] == 999999
    z = torch.zeros(1 << 28, device="cuda")
    assert z[12345].item() == 0 and z[-5:].tolist() == [0.0] * 5
    # Memory that held something else: a result that is not computed reads as zero.
    a = torch.arange(1, 300001).cuda()
    at = a.data_ptr()
    del a
    b = torch.empty(600, 500, device="cuda")
    assert b.data_ptr() == at
    torch.mm(torch.randn(600, 10, device="cuda"), torch.randn(10, 500, device="cuda"), out=b)
    assert b.abs().sum().item() == 0 and not b.cpu().any()
"""

READ = """
    import torch
    a = torch.randn(100, 100, device="cuda") @ torch.randn(100, 100, device="cuda")
    known = torch.tensor([3, 1, 2]).cuda()
    for step in range(3):
        print(a.sum().item())           # harmless
    print(a.cpu().shape)                # harmless
    print(known[0].item(), known.tolist(), int(known[1]))
    mask = a > 0
    n = mask.nonzero()                  # size
    b = a[mask]                         # size
    u = torch.unique((a * 10).long())   # size
    k = int((a * 10).long().argmax())   # size
    c = torch.repeat_interleave(torch.arange(100, device="cuda"), a.argmax(-1))  # size
    if a.mean() > 5:                    # decision
        pass
"""


def write(folder, text):
    path = folder / "program.py"
    path.write_text(textwrap.dedent(text))
    return path


def lines_of(path, word):
    return {i for i, line in enumerate(path.read_text().split("\n"), 1) if re.search("# " + word, line)}


def test_what_came_from_the_host_comes_back(programs):
    done = programs(write(programs.folder, KEPT), traced=False)
    assert done.returncode == 0, done.stderr


def test_sizes_and_decisions_are_told_from_what_is_only_read(programs, tool):
    program = write(programs.folder, READ)
    recording = programs.traced(program)
    found = tool.json("report", recording)["values_not_computed"]
    places = found["places"]
    assert {os.path.basename(p["file"]) for p in places} == {"program.py"}
    assert {p["line"] for p in places if p["decides"]} == lines_of(program, "size|# decision")
    assert {p["line"] for p in places if not p["decides"]} == lines_of(program, "harmless")
    assert sum(p["reads"] for p in places if not p["decides"]) == 4
    assert found["reads"] == sum(p["reads"] for p in places)
    assert found["decisions"] == sum(p["reads"] for p in places if p["decides"])
    first = min(lines_of(program, "size"))
    said = f"{found['decisions']} sizes or decisions rested on values that are not computed; first: program.py:{first} nonzero"
    assert said in tool("report", recording)
    page = programs.folder / "page.html"
    tool("html", recording, "-o", page)
    assert said in page.read_text()
    reads = [e for e in tool.events(recording) if e.get("kind") == "value"]
    assert len(reads) == found["reads"]


def test_run_says_so(programs, tool):
    program = write(programs.folder, READ)
    command = [str(BUILD / "gpumemtrace"), "run", "--sim", "h100-80g", "-o", "x.gmt"]
    env = {k: v for k, v in programs.environment(traced=False).items() if k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
    done = subprocess.run([*command, "--json", "--", sys.executable, str(program)], env=dict(env, SIMGPU_VALUES="1"),
                          cwd=programs.folder, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stderr.strip().split("\n")[-1])["values_not_computed"]
    assert found["sizes"] >= 5 and found == tool.json("report", programs.folder / "x.gmt")["values_not_computed"]
    assert f"simgpu: {found['reads']} copies to the host had values that were not computed" in done.stderr
    quiet = write(programs.folder, "import torch; print(torch.ones(3).cuda().sum().item())")
    done = subprocess.run([*command, "--", sys.executable, str(quiet)], env=env, cwd=programs.folder,
                          capture_output=True, text=True, timeout=240)
    assert "rested" not in done.stderr and done.stdout == "3.0\n"
