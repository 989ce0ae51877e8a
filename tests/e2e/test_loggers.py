# SPDX-License-Identifier: Apache-2.0
"""The peaks of steps in Weights & Biases (offline) and MLflow (files): what they kept is what PyTorch counted."""
import json
import os

import pytest
from conftest import PACKAGE, ROOT

PACKAGES = next(iter((ROOT / ".venv-loggers").glob("lib/python3*/site-packages")), None)
pytestmark = [pytest.mark.installed, pytest.mark.skipif(not PACKAGES, reason="no .venv-loggers: scripts/setup.sh loggers")]

PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import mlflow, torch, wandb
from gpumemtrace._steps_log import StepsLog, active_loggers

run = wandb.init(project="p", mode="offline", dir=sys.argv[2])
mlflow.set_tracking_uri("file:" + sys.argv[2] + "/mlflow")
mlflow.start_run()
model = torch.nn.Linear(64, 4096).cuda()
optimizer, log, peaks = torch.optim.AdamW(model.parameters()), StepsLog(every=2), {}
for i in range(1, 7):
    torch.cuda.reset_peak_memory_stats()
    model(torch.ones(8 * i, 64, device="cuda")).sum().backward()
    optimizer.step()
    peaks[i] = torch.cuda.max_memory_allocated()
    optimizer.zero_grad()
    log.step(i, active_loggers())
log.log(active_loggers())
client, kept = mlflow.MlflowClient(), {}
active = mlflow.active_run().info.run_id
for name in client.get_run(active).data.metrics:
    kept[name] = {m.step: m.value for m in client.get_metric_history(active, name)}
said = {"peaks": peaks, "mlflow": kept, "wandb": dict(run.summary)}
mlflow.end_run()
run.finish()
print(json.dumps(said, default=str))
"""


def test_wandb_and_mlflow(programs, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = programs(program, PACKAGE, tmp_path, GPUMEMTRACE_OUTPUT="run.gmt", PYTHONPATH=PACKAGES,
                    MLFLOW_ALLOW_FILE_STORE="true", WANDB_SILENT="true", HOME=tmp_path, PATH=os.environ["PATH"])
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["mlflow"]["gpu_memory/peak"] == said["peaks"] and len(said["peaks"]) == 6
    for step, peak in said["peaks"].items():
        assert sum(values.get(step, 0) for name, values in said["mlflow"].items() if name != "gpu_memory/peak") == peak
    assert said["wandb"]["gpu_memory/peak"] == said["peaks"]["6"]
    assert {k for k in said["wandb"] if k.startswith("gpu_memory/")} == set(said["mlflow"])
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))
