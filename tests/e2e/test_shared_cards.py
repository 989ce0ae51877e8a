# SPDX-License-Identifier: Apache-2.0
"""Processes of one program share the simulated cards as they would share real ones: what another one holds is not free, and what an
ended one held is. PyTorch's own message says who holds it."""
import json
import re
import subprocess
import sys

import pytest

from conftest import BUILD, REAL

pytestmark = pytest.mark.skipif(REAL, reason="about the simulated device")
TOOL = str(BUILD / "gpumemtrace")
CHILD = """
import os, sys, torch
held = torch.empty(3 << 30, dtype=torch.uint8, device="cuda")
print(os.getpid(), flush=True)
sys.stdin.readline()
if sys.argv[1] == "exec":
    os.execvp("sleep", ["sleep", "100"])
elif sys.argv[1] == "exec again":
    os.execv(sys.executable, [sys.executable, sys.argv[2], "exit"])
"""
PARENT = """
import os, subprocess, sys, torch
held = torch.empty(3 << 30, dtype=torch.uint8, device="cuda")
child = subprocess.Popen([sys.executable, sys.argv[2], sys.argv[1], sys.argv[2]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print(child.stdout.readline().strip())
print(torch.cuda.mem_get_info()[0])
try:
    torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError as e:
    print(str(e).replace("\\n", " "))
print("end", file=child.stdin, flush=True)
if sys.argv[1] == "kill":
    child.kill()
if sys.argv[1] == "exec again":
    child.stdout.readline()
    print(torch.cuda.mem_get_info()[0])
    sys.exit()
while torch.cuda.mem_get_info()[0] < 4 << 30:
    pass
torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
child.kill()
print("fits")
"""
# Many short processes, each with memory of its own, without PyTorch.
MANY = """
import ctypes, os, signal
cuda = ctypes.CDLL("libcuda.so.1")
def take(bytes):
    context, address = ctypes.c_void_p(), ctypes.c_uint64()
    assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) and not cuda.cuCtxSetCurrent(context)
    return cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(bytes))
for _ in range(300):
    child = os.fork()
    if not child:
        os._exit(take(1 << 30))
    assert not os.waitpid(child, 0)[1]
pids = []
for _ in range(2):
    ready = os.pipe()
    pids.append(os.fork())
    if not pids[-1]:
        os.write(ready[1], b"%d" % take(3 << 30))
        signal.pause()
    assert os.read(ready[0], 1) == b"0"
print(take(1 << 30))
for pid in pids:
    os.kill(pid, 9)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
print(take(6 << 30))  # beside processes that nobody has waited for
"""


def run(folder, sim, program, *arguments, code=0, **env):
    (folder / "program.py").write_text(program)
    (folder / "child.py").write_text(CHILD)
    done = subprocess.run([TOOL, "run", "-q", "--sim", sim, "-o", folder / "x.gmt", "--", sys.executable, folder / "program.py", *arguments],
                          capture_output=True, text=True, timeout=600, stdin=subprocess.PIPE)
    assert done.returncode == code, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("end", ["exit", "kill", "exec"])
def test_memory_of_another_process_is_not_free(tmp_path, end):
    pid, free, message, fits = run(tmp_path, "mine=8GiB", PARENT, end, str(tmp_path / "child.py"))
    context = 520 << 20
    assert int(free) == (8 << 30) - 2 * ((3 << 30) + context) and fits == "fits"
    assert f"Process {pid} has 3.51 GiB memory in use" in message
    oom = json.loads(subprocess.run([TOOL, "oom", "--json", tmp_path / "x.gmt"], capture_output=True, text=True).stdout)
    assert oom["cause"] == "other_process" and oom["free_bytes"] == int(free)
    said = subprocess.run([TOOL, "oom", tmp_path / "x.gmt"], capture_output=True, text=True).stdout
    assert re.search(r"other processes +3\.5 GiB  at least", said)


def test_a_process_that_becomes_another_program_holds_what_that_holds(tmp_path):
    *_, before, message, after = run(tmp_path, "mine=8GiB", PARENT, "exec again", str(tmp_path / "child.py"))
    assert "out of memory" in message and before == after


def test_many_short_processes(tmp_path):
    assert run(tmp_path, "mine=8GiB", MANY) == ["2", "0"]


def test_devices_are_shared_and_not_the_sum(tmp_path):
    program = PARENT.replace("subprocess.Popen(", 'subprocess.Popen(env={**os.environ, "CUDA_VISIBLE_DEVICES": "1"}, args=')
    _, free, fits = run(tmp_path, "mine=8GiB,2", program.replace("while torch", "while 0 and torch"), "exit", str(tmp_path / "child.py"))
    assert int(free) == (8 << 30) - (3 << 30) - (520 << 20) and fits == "fits"


def test_fit_counts_all_processes(tmp_path):
    takes = 'import torch; held = torch.empty(3 << 30, dtype=torch.uint8, device="cuda")'
    program = tmp_path / "program.py"
    program.write_text(f"import subprocess, sys\n{takes}\nsubprocess.run([sys.executable, '-c', {takes!r}], check=True)\n")
    for card, code in (("mine=6GiB", 1), ("mine=8GiB", 0)):
        done = subprocess.run([TOOL, "fit", "--json", "--cards", card, "--", sys.executable, program], capture_output=True, text=True, timeout=600, cwd=tmp_path)
        assert done.returncode == code, (done.stdout, done.stderr)
    assert json.loads(done.stdout)["cards"][0]["device_bytes"] == 2 * ((3 << 30) + (520 << 20))
