# SPDX-License-Identifier: Apache-2.0
"""The examples run as they are, on the simulated device: with torchrun, with a stand-in for Slurm's srun, the command of the
Kubernetes job locally, with Ray where it is installed."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import shown
from conftest import BUILD, REAL, ROOT, WHEEL

EXAMPLES = ROOT / "examples"
SRUN = ROOT / "tests/e2e/slurm"
LOGGERS = next(iter((ROOT / ".venv-loggers").glob("lib/python3*/site-packages")), None)
pytestmark = [pytest.mark.installed, pytest.mark.skipif(REAL, reason="asks for two simulated devices")]


def start(command, folder, **more):
    path = ":".join(map(str, (*more.pop("first", ()), BUILD, Path(sys.executable).parent, os.environ["PATH"])))
    env = {**os.environ, "PATH": path, "SIM": "--sim h100-80g,2", "OUT": str(folder / "run"), "OMP_NUM_THREADS": "1", **more}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, env=env, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def check_ranks(tool, folder, printed):
    assert "Highest peak" in printed and "rank 1" in printed
    files = sorted(folder.glob("*.gmt"))
    peaks = [tool.json("report", f)["devices"] for f in files]
    assert len(files) == 2
    peak = [max(d["peak_bytes"] for d in p) for p in peaks]
    assert peak[1] - peak[0] in range(2 << 20, 4 << 20)  # the outputs that rank 1 keeps


def check_shown(page, printed):
    """The README has what is printed, but for how many events there are."""
    (block,) = (b for b in shown.blocks(f"examples/{page}/README.md") if "Highest peak" in b)
    lines = block.splitlines()
    wrong = shown.difference(lines[lines[0].startswith("$"):], printed, shown.without_time)
    assert not wrong, wrong


def test_torchrun(tool, tmp_path):
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    script = ["sh", "-c", "./run.sh 2>&1"]
    printed = start(script, tmp_path / "examples/torchrun", OUT="run")
    check_ranks(tool, tmp_path / "examples/torchrun/run", printed)
    check_shown("torchrun", printed)


def test_slurm(tool, tmp_path):
    printed = start(["sh", EXAMPLES / "slurm/job.sbatch"], tmp_path, first=(SRUN,), SLURM_JOB_ID="7", SLURM_NTASKS="2",
                    SLURM_SUBMIT_DIR=str(EXAMPLES / "slurm"))
    check_ranks(tool, tmp_path / "run", printed)
    check_shown("slurm", printed.replace(str(EXAMPLES), "/home/me/examples"))


def test_kubernetes(programs, tool, tmp_path):
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load((EXAMPLES / "kubernetes/job.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    pod = job["spec"]["template"]["spec"]
    assert pod["restartPolicy"] in ("Never", "OnFailure")
    volumes = {v["name"] for v in pod["volumes"]}
    for container in pod["initContainers"] + pod["containers"]:
        assert {m["name"] for m in container["volumeMounts"]} <= volumes
    training = pod["containers"][0]
    mounts = {m["name"]: m["mountPath"] for m in training["volumeMounts"]}
    env = {e["name"]: e["value"] for e in training["env"]}
    assert env["LD_PRELOAD"] == mounts["gpumemtrace"] + "/gpumemtrace/lib/libgpumemtrace.so"
    output, more = env["GPUMEMTRACE_OUTPUT"].replace(mounts["recordings"], str(tmp_path)), {}
    if WHEEL:
        init = pod["initContainers"][0]["command"]
        assert init[:2] == ["sh", "-c"] and mounts["gpumemtrace"] in init[2] and "/wheels/" in init[2]
        assert "COPY dist/gpumemtrace-*-x86_64.whl /wheels/" in (EXAMPLES / "kubernetes/Dockerfile").read_text()
        (tmp_path / "wheels").mkdir()  # what the image has: one wheel, of its machine
        shutil.copy(WHEEL, tmp_path / "wheels")
        command = init[2].replace("/wheels/", f"{tmp_path}/wheels/").replace(f" {mounts['gpumemtrace']} ", f" {tmp_path}/volume ")
        start(["sh", "-c", command], tmp_path)
        lib = tmp_path / "volume/gpumemtrace/lib"
        assert lib.is_dir(), command
        more = {"LD_PRELOAD": f"{lib}/libgpumemtrace.so:{lib}/libsimgpu.so", "LD_LIBRARY_PATH": lib / "simgpu"}
    done = programs(EXAMPLES / "train.py", GPUMEMTRACE_OUTPUT=output, **more)
    files = list(tmp_path.glob("*.gmt"))
    assert done.returncode == 0 and len(files) == 1 and tool.json("report", files[0])["devices"][0]["peak_bytes"] > 1 << 20


VALIDATE = """
import sys
import kubernetes_validate, yaml
kubernetes_validate.validate(yaml.safe_load(open(sys.argv[1])), "1.37", strict=True)
"""


@pytest.mark.skipif(not LOGGERS or not (LOGGERS / "kubernetes_validate").exists(), reason="no kubernetes-validate in .venv-loggers: scripts/setup.sh loggers")
def test_the_manifest_is_valid_by_the_schema_of_kubernetes(tmp_path):
    """Strictly, which knows every member: a misspelt one is refused."""
    manifest, wrong = EXAMPLES / "kubernetes/job.yaml", tmp_path / "wrong.yaml"
    wrong.write_text(manifest.read_text().replace("restartPolicy", "restartPolice"))
    for file, code in ((manifest, 0), (wrong, 1)):
        done = subprocess.run([LOGGERS.parents[2] / "bin/python", "-c", VALIDATE, file], capture_output=True, text=True)
        assert done.returncode == code and ("restartPolice" in done.stderr) == bool(code), done.stderr[-2000:]


@pytest.mark.skipif(not LOGGERS or not (LOGGERS / "ray").exists(), reason="no ray in .venv-loggers: scripts/setup.sh loggers")
def test_ray(programs, tool, tmp_path):
    library = f"{BUILD}/libgpumemtrace.so:{BUILD}/libsimgpu.so"
    printed = start([sys.executable, EXAMPLES / "ray/task.py", library, tmp_path], tmp_path, PYTHONPATH=str(LOGGERS),
                    LD_LIBRARY_PATH=str(BUILD / "simgpu"), SIMGPU_CARD="h100-80g", RAY_AUTH_MODE="disabled", HOME=str(tmp_path))
    files = list(tmp_path.glob("*.gmt"))
    assert len(files) == 1
    assert tool.json("report", files[0])["devices"][0]["peak_bytes"] == int(printed.splitlines()[-1])
    (block,) = shown.blocks("examples/ray/README.md")
    assert shown.parts(block)[0][1] == [printed.splitlines()[-1]]


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="no shellcheck")
def test_scripts_are_clean():
    for script in (EXAMPLES / "torchrun/run.sh", EXAMPLES / "slurm/job.sbatch", SRUN / "srun"):
        done = subprocess.run(["shellcheck", "-f", "json", script], capture_output=True, text=True)
        assert json.loads(done.stdout) == [], script
