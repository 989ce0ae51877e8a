# SPDX-License-Identifier: Apache-2.0
"""Where people work: notebooks, trainers of frameworks, Prometheus. Figures that are logged are held against PyTorch's own peaks
of the same steps."""
import json
import os
import re
import subprocess
import sys
import time

import pytest
from conftest import BUILD, PACKAGE as PYTHON, ROOT

pytestmark = pytest.mark.installed
TOOLS = ROOT / ".venv-tools/bin/python"
TRAINERS = next(iter((ROOT / ".venv-trainers").glob("lib/python3*/site-packages")), None)

NOTEBOOK = """
import html, json, re, sys
sys.path.insert(0, sys.argv[1])
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "gpumemtrace")
CELL = '''
import ctypes
cuda, p, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(SIZE)) == 0
print("took", SIZE, "globals" in dir())
'''
said = []
for line, size in ("--name r", 1 << 20), ("--name again --height 300", 1 << 21):
    with capture_output() as out:
        shell.run_cell_magic("gpumemtrace", line, CELL.replace("SIZE", str(size)))
    name = line.split()[1]
    frame = next((o.data["text/html"] for o in out.outputs if "text/html" in o.data), "")
    page = html.unescape(re.search(r'srcdoc="([^"]*)"', frame)[1])
    said.append([out.stdout, shell.user_ns[name].peak, "height: 300px" in frame, page[:15], len(page)])
with capture_output() as out:
    shell.run_cell_magic("gpumemtrace", "--no-page --name none", "print(1)")
said.append([out.stdout, "none" in shell.user_ns])
with capture_output() as out:
    failed = shell.run_cell("%%gpumemtrace --sise 3\\n1")
said.append(repr(failed.error_in_exec))
said.append("p" in shell.user_ns)
print(json.dumps(said))
"""


@pytest.mark.skipif(not TOOLS.exists(), reason="no .venv-tools: scripts/setup.sh tools")
@pytest.mark.parametrize("recorded", [False, True])
def test_a_cell_of_a_notebook(tmp_path, recorded):
    start = [BUILD / "gpumemtrace", "run", "--sim", "h100-80g", "-o", tmp_path / "kernel.gmt", "--"] if recorded else []
    done = subprocess.run([*start, TOOLS, "-c", NOTEBOOK, PYTHON], capture_output=True, text=True, timeout=200, cwd=tmp_path,
                          env={**os.environ, "IPYTHONDIR": str(tmp_path / "ipython")})
    assert done.returncode == 0, done.stderr
    first, second, third, error, in_kernel = json.loads(done.stdout.splitlines()[-1])
    assert "took 1048576" in first[0] and first[1] == 1 << 20 and first[2] is False and first[3] == "<!doctype html>" and first[4] > 50_000
    # In a recorded kernel nothing was freed between the cells, else each cell is a program.
    assert "took 2097152" in second[0] and second[1] == (3 << 20 if recorded else 2 << 20) and second[2] is True
    assert third[0].startswith("1\n") and third[1] is recorded and ("nothing was recorded" in third[0]) is not recorded
    assert "unrecognized arguments: --sise" in error and in_kernel is recorded


TRANSFORMERS = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments
import gpumemtrace.transformers

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(64, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1))
    def forward(self, x, labels):
        return {"loss": (self.net(x).squeeze() - labels).square().mean()}

class Truth(TrainerCallback):
    peaks = {}
    def on_step_begin(self, args, state, control, **_):
        torch.cuda.reset_peak_memory_stats()
    def on_step_end(self, args, state, control, **_):
        self.peaks[state.global_step] = torch.cuda.max_memory_allocated()

class Writer:
    rows = []
    def add_scalar(self, name, value, step):
        self.rows.append((name, value, step))

functions = []
data = [{"x": torch.ones(64), "labels": torch.tensor(1.0)} for _ in range(56)]
arguments = TrainingArguments(sys.argv[2], per_device_train_batch_size=8, max_steps=6, report_to=[], save_strategy="no", disable_tqdm=True,
                              dataloader_pin_memory=False)
memory = gpumemtrace.transformers.GpuMemory([Writer(), lambda figures, step: functions.append((step, figures))], every=2)
Trainer(Net(), arguments, train_dataset=data, callbacks=[memory, Truth()]).train()
print(json.dumps({"peaks": Truth.peaks, "rows": Writer.rows, "functions": functions}))
"""

LIGHTNING = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch
import lightning.pytorch as pl
from lightning.pytorch.loggers import CSVLogger
import gpumemtrace.lightning

class Net(pl.LightningModule):
    peaks = {}
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(64, 4096)
    def training_step(self, batch, i):
        return self.net(batch[0]).square().mean()
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
    def on_train_batch_start(self, *rest):
        torch.cuda.reset_peak_memory_stats()
    def on_train_batch_end(self, *rest):
        self.peaks[self.trainer.global_step] = torch.cuda.max_memory_allocated()

functions = []
class Logger(CSVLogger):
    def log_metrics(self, metrics, step=None):
        functions.append((step, {k: v for k, v in metrics.items() if k.startswith("gpu_memory/")}))

data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(64, 64)), batch_size=8)
trainer = pl.Trainer(max_steps=6, accelerator="gpu", devices=1, logger=Logger(sys.argv[2]), callbacks=[gpumemtrace.lightning.GpuMemory(every=4)],
                     enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False, default_root_dir=sys.argv[2])
trainer.fit(Net(), data)
print(json.dumps({"peaks": Net.peaks, "functions": [f for f in functions if f[1]]}))
"""


def check_steps(said, tool, recording):
    """Each step once, in order, with PyTorch's peak (steps begin and end a little elsewhere); classes make up the peak."""
    steps = [step for step, _ in said["functions"]]
    assert steps == list(range(1, 7))
    for step, figures in said["functions"]:
        assert figures["gpu_memory/peak"] == said["peaks"][str(step)], step
        assert sum(v for k, v in figures.items() if k != "gpu_memory/peak") == figures["gpu_memory/peak"]
        assert figures["gpu_memory/parameters"] > 0
    marks = [e["name"] for e in tool.events(recording) if e.get("kind") == "mark" and e["arg1"] == 3]
    assert marks == [f"step {n}" for n in range(1, 7)]


def test_the_trainer_of_transformers(tool, programs, tmp_path):
    pytest.importorskip("accelerate")
    program = tmp_path / "program.py"
    program.write_text(TRANSFORMERS)
    done = programs(program, PYTHON, tmp_path / "out", GPUMEMTRACE_OUTPUT="run.gmt", HF_HUB_OFFLINE=1)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    check_steps(said, tool, tmp_path / "run.gmt")
    assert [[name, value, step] for step, figures in said["functions"] for name, value in figures.items()] == said["rows"]
    done = programs(program, PYTHON, tmp_path / "out", traced=False)
    assert done.returncode == 0 and json.loads(done.stdout.splitlines()[-1])["functions"] == []


@pytest.mark.skipif(not TRAINERS, reason="no .venv-trainers: scripts/setup.sh trainers")
def test_lightning(tool, programs, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(LIGHTNING)
    done = programs(program, PYTHON, tmp_path / "out", GPUMEMTRACE_OUTPUT="run.gmt", PYTHONPATH=TRAINERS)
    assert done.returncode == 0, done.stderr[-3000:]
    check_steps(json.loads(done.stdout.splitlines()[-1]), tool, tmp_path / "run.gmt")


PROGRAM = """
import sys, time
sys.path.insert(0, sys.argv[1])
import torch, gpumemtrace.prometheus
kept = torch.ones(1 << 20, device="cuda")
print(gpumemtrace.prometheus.write(sys.argv[2]), torch.cuda.memory_allocated(), flush=True)
time.sleep(100)
"""
LINE = re.compile(r'^[a-z_]+\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)+\} \d+$')


def figures(text):
    """Every sample; what the format asks for is there."""
    lines = text.splitlines()
    assert text.endswith("\n") and all(LINE.match(line) for line in lines if not line.startswith("#"))
    names = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert len(names) == len(set(names)) and {line.split("{")[0] for line in lines if not line.startswith("#")} == set(names)
    return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}


def test_prometheus(tool, programs, tmp_path):
    program, mine, other = tmp_path / "program.py", tmp_path / "mine.prom", tmp_path / "other.prom"
    program.write_text(PROGRAM)
    running = subprocess.Popen([sys.executable, program, PYTHON, mine], stdout=subprocess.PIPE, text=True, cwd=tmp_path,
                               env=programs.environment(GPUMEMTRACE_OUTPUT="run.gmt"))
    try:
        wrote, allocated = running.stdout.readline().split()
        command = [sys.executable, "-m", "gpumemtrace.prometheus", str(running.pid), "-o", other]
        follower = subprocess.Popen([*command, "--every", "0.2"], env={**os.environ, "PYTHONPATH": str(PYTHON)})
        deadline = time.time() + 60
        while not other.exists() and time.time() < deadline:
            time.sleep(0.1)
        assert wrote == "True"
        now = tool.json("top", running.pid)
        for path in mine, other:
            found, who = figures(path.read_text()), f'pid="{running.pid}",device="0"'
            assert found["gpumemtrace_peak_bytes{%s}" % who] == int(allocated) == now["bytes"]
            assert {k: v for k, v in found.items() if k.startswith("gpumemtrace_bytes{")} == \
                {'gpumemtrace_bytes{%s,class="%s"}' % (who, name): size for name, size in now["categories"].items()}
    finally:
        running.kill()
        running.wait()
    follower.wait(timeout=60)
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(PYTHON)}, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "gpumemtrace: there is no process" in done.stderr
