# SPDX-License-Identifier: Apache-2.0
"""Recordings that are read where the program's libraries are not: the names of exported functions are in the recording, and classes are the
same."""
import csv
import importlib.util
import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import test_hooks
from conftest import Tool

LIBRARY = """
int cuMemAlloc_v2(unsigned long *p, unsigned long n);
unsigned long taken[9];
static __attribute__((noinline)) int only_in_the_file(int i) { return cuMemAlloc_v2(&taken[i], 1 << 20) + i; }
__attribute__((noinline)) int exported_by_it(int i) { return only_in_the_file(i) + 1; }
"""
PROGRAM = """
int exported_by_it(int i);
int main(void)
{
	void *context;
	return cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || exported_by_it(3) != 4;
}
"""
TRAIN = """
import torch
net = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64 * 62 * 62, 100)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for step in range(3):
    x = torch.randn(16, 3, 64, 64).cuda()
    net(x).square().mean().backward()
    largest = [p.grad.abs() for p in net.parameters()]
    optimizer.step()
    optimizer.zero_grad()
"""
HIDDEN = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"']


def functions(recording, tool):
    first = next(e["stack"] for e in tool.events(recording) if e["kind"] == "mem_alloc")
    return [f["function"] for f in tool.json("stack", recording, first)["frames"] if f["kind"] == "native"]


def test_exported_names_stay(tmp_path, tool):
    library = test_hooks.cc(tmp_path, "libtaker.so", LIBRARY, test_hooks.SIM)
    program = test_hooks.cc(tmp_path, "program", PROGRAM, library, test_hooks.SIM)
    test_hooks.simulated(program, folder=tmp_path)
    assert {"only_in_the_file", "exported_by_it", "main"} <= set(functions(tmp_path / "run.gmt", tool))
    os.unlink(library)
    left = functions(tmp_path / "run.gmt", tool)
    assert "exported_by_it" in left and "only_in_the_file" not in left
    test_hooks.cc(tmp_path, "libtaker.so", LIBRARY.replace("exported_by_it", "of_another_build"), test_hooks.SIM)
    assert functions(tmp_path / "run.gmt", tool) == left


def test_recover_adds_names(tmp_path, tool):
    library = test_hooks.cc(tmp_path, "libtaker.so", LIBRARY, test_hooks.SIM)
    program = test_hooks.cc(tmp_path, "program", PROGRAM.replace("!= 4;", "!= 4 || raise(9);"), library, test_hooks.SIM)
    with pytest.raises(AssertionError, match="-9"):
        test_hooks.simulated(program, folder=tmp_path)
    tool("recover", tmp_path / "run.gmt", "-o", tmp_path / "whole.gmt")
    os.unlink(library)
    assert not {"only_in_the_file", "exported_by_it"} & set(functions(tmp_path / "run.gmt", tool))
    assert {"only_in_the_file", "exported_by_it"} <= set(functions(tmp_path / "whole.gmt", tool))


def answer(recording, *command):
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=recording.parent).stdout


@pytest.mark.slow
@pytest.mark.forks
def test_classes_without_libraries(programs):
    """Most of PyTorch's functions are exported; what a class needs of the others is seen in those."""
    (programs.folder / "train.py").write_text(TRAIN)
    recording = programs.traced(programs.folder / "train.py")
    hidden = [*HIDDEN, str(Path(importlib.util.find_spec("torch").origin).resolve().parent / "lib"), Tool.path]
    if not shutil.which("unshare") or subprocess.run([*hidden, "--version"], capture_output=True).returncode:
        pytest.skip("no right to make a mount namespace")
    of_blocks = ["export", "--to", "csv", "-o", "-", str(recording)]
    rows = [[(b["class"], b["rule"]) for b in csv.DictReader(io.StringIO(answer(recording, *tool, *of_blocks)))] for tool in ([Tool.path], hidden)]
    assert len(rows[0]) > 50 and rows[0] == rows[1]
    assert {"workspace", "optimizer_temporaries", "inputs"} <= {name for name, _ in rows[0]}
    stacks = [answer(recording, *tool, "export", "--to", "folded", "-o", "-", str(recording)) for tool in ([Tool.path], hidden)]
    assert "THPVariable_" in stacks[0] and "THPVariable_" not in stacks[1]  # they were hidden
    assert "at::_ops::conv" in stacks[1]
