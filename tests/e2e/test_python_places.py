# SPDX-License-Identifier: Apache-2.0
"""Where people work: notebooks, trainers of frameworks, Prometheus, OpenTelemetry. Figures that are logged are held against PyTorch's own peaks
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
TOOLS, LOGGERS = ROOT / ".venv-tools/bin/python", ROOT / ".venv-loggers/bin/python"
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
    done = subprocess.run([*start, TOOLS, "-c", NOTEBOOK, PYTHON], capture_output=True, text=True, timeout=600, cwd=tmp_path,
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
WHOSE = {"USER": 'a"b\\c\u00e9', "SLURM_JOB_ID": "812", "SLURM_JOB_NAME": "pretrain", "SLURM_ARRAY_TASK_ID": "3", "POD_NAMESPACE": "ml", "WANDB_PROJECT": "wide",
         "MLFLOW_RUN_ID": "r7", "GPUMEMTRACE_LABELS": "model=llama-8b, batch=16, my-team=x,pid=1,user=other,=,9=9,long=" + 300 * "y" + "".join(f",n{i}={i}" for i in range(40))}
LABELS = {"user": WHOSE["USER"], "job": "812", "job_name": "pretrain", "job_task": "3", "namespace": "ml", "experiment": "wide", "experiment_run": "r7",
          "model": "llama-8b", "batch": "16", "my_team": "x", "long": 128 * "y", **{f"n{i}": str(i) for i in range(8)}}
SAMPLE = re.compile(r'^([a-z_]+)\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\]|\\["\\n])*",?)+)\} (\d+)$')


def figures(text):
    """Every sample, by its name, device and class; labels that say whose run it is are those of the environment. What the format asks for is there."""
    lines, found = text.splitlines(), {}
    for name, labels, value in (SAMPLE.match(line).groups() for line in lines if not line.startswith("#")):
        has = {k: re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], v) for k, v in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels)}
        assert len(has) == labels.count('="') and {k: v for k, v in has.items() if k not in ("pid", "device", "class", "host", "git_commit", "git_branch", "repository")} == LABELS
        found[(name, has["pid"], has["device"], has.get("class"))] = int(value)
    names = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert text.endswith("\n") and len(names) == len(set(names)) and {key[0] for key in found} == set(names)
    return found


# A collector of OpenTelemetry, by its own description of messages: what it was sent, as JSON.
COLLECTOR = """
import http.server, json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message = json_format.Parse(body, ExportMetricsServiceRequest())
        of = lambda attributes: {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in attributes}
        (one,) = message.resource_metrics
        (scope,) = one.scope_metrics
        points = [[m.name, m.WhichOneof("data"), of(p.attributes), p.as_int, p.time_unix_nano] for m in scope.metrics for p in getattr(m, m.WhichOneof("data")).data_points]
        print(json.dumps([self.path, self.headers["x-key"], self.headers["Content-Type"], of(one.resource.attributes), points]), flush=True)
        self.send_response(200)
        self.end_headers()
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
print(server.server_port, flush=True)
server.handle_request()
"""


def send(process, **more):
    return subprocess.run([sys.executable, "-m", "gpumemtrace.opentelemetry", str(process)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(PYTHON), **more})


def check_collector(now):
    collector = subprocess.Popen([LOGGERS, "-c", COLLECTOR], stdout=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{collector.stdout.readline().strip()}"
    done = send(now["pid"], OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_EXPORTER_OTLP_HEADERS="x-key=a%20b", OTEL_SERVICE_NAME="train")
    assert (done.returncode, done.stderr) == (0, "")
    path, key, kind, resource, points = json.loads(collector.communicate()[0])
    assert (path, key, kind) == ("/v1/metrics", "a b", "application/json")
    ours = {"process.owner" if k == "user" else f"gpumemtrace.{k}": v for k, v in LABELS.items()}
    assert resource["process.pid"] == now["pid"] and resource["service.name"] == "train" and resource["host.name"] and ours.items() <= resource.items()
    assert {a["class"]: v for name, _, a, v, _ in points if name == "gpumemtrace.bytes"} == now["categories"]
    one = {name: (form, v) for name, form, a, v, _ in points if "class" not in a}
    assert one["gpumemtrace.peak_bytes"] == ("gauge", now["peak_bytes"]) and one["gpumemtrace.events"] == ("sum", now["events"]) and len(one) == 5
    assert all(abs(when / 1e9 - time.time()) < 60 for *_, when in points)
    away = send(now["pid"], OTEL_EXPORTER_OTLP_ENDPOINT=url)
    assert away.returncode == 3 and away.stderr.count("\n") == 1 and url in away.stderr


def test_prometheus_and_opentelemetry(tool, programs, tmp_path):
    """The figures of `top`, and the labels of the environment: escaped, cut, and no more than a few."""
    program, mine, other = tmp_path / "program.py", tmp_path / "mine.prom", tmp_path / "other.prom"
    program.write_text(PROGRAM)
    running = subprocess.Popen([sys.executable, program, PYTHON, mine], stdout=subprocess.PIPE, text=True, cwd=tmp_path,
                               env=programs.environment(GPUMEMTRACE_OUTPUT="run.gmt", **WHOSE))
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
            found, who = figures(path.read_text()), (str(running.pid), "0")
            assert found["gpumemtrace_peak_bytes", *who, None] == int(allocated) == now["bytes"]
            assert {k[3]: v for k, v in found.items() if k[0] == "gpumemtrace_bytes"} == now["categories"]
        if LOGGERS.exists():
            check_collector(now)
    finally:
        running.kill()
        running.wait()
    follower.wait(timeout=600)
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(PYTHON)}, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "gpumemtrace: there is no process" in done.stderr
