# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/python.md and docs/ci.md run as they are written."""
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from conftest import BUILD, ROOT

TOOLS = ROOT / ".venv-tools/bin/python"
EXAMPLE = ROOT / "tests/data/example"


def examples(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.M | re.S)


@pytest.fixture
def folder(tmp_path):
    for name in "old.gmt", "new.gmt":
        shutil.copy(EXAMPLE / name, tmp_path)
    return tmp_path


def run(folder, *command, code=0):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PATH": f"{BUILD}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout


@pytest.mark.skipif(not TOOLS.exists(), reason="no .venv-tools: scripts/setup.sh tools")
def test_python(folder):
    reading, tables, inside = examples("python.md", "python")
    said = run(folder, TOOLS, "-c", reading)
    assert "23444927488" in said and "retained_graph" in said and "False ['peak 21.8 GiB: 5.8 GiB more than the 16.0 GiB" in said
    assert "block_alloc" in run(folder, TOOLS, "-c", tables)
    assert run(folder, TOOLS, "-c", inside) == ""
    took = "import torch\nx = torch.ones(1 << 20, device='cuda')\n" + inside
    said = run(folder, BUILD / "gpumemtrace", "run", "--sim", "h100-80g", "-o", "run.gmt", "--", sys.executable, "-c", took)
    assert said == f"{4 << 20}\n"


def test_ci(folder):
    (folder / "train.py").write_text("import torch\nx = torch.ones(1 << 20, device='cuda')\n")
    (commands,) = examples("ci.md", "sh")
    record, bounds, baseline = (line.split()[1:] for line in commands.splitlines())
    run(folder, BUILD / "gpumemtrace", *[sys.executable if w == "python" else str(folder / "run.gmt") if w == "new.gmt" else w for w in record])
    assert run(folder, BUILD / "gpumemtrace", *bounds, code=1).count("\n") == 3
    assert "::error" in run(folder, BUILD / "gpumemtrace", *baseline, code=1) and (folder / "memory.xml").exists()
    (test,) = examples("ci.md", "python")
    (folder / "test_it.py").write_text(test)
    options = re.findall(r"^\| `(--[^`]*)`", (ROOT / "docs/ci.md").read_text(), re.M)
    assert len(options) == 5
    words = [w for option in options for w in option.split()]
    said = run(folder, sys.executable, "-m", "pytest", "-p", "gpumemtrace.pytest_plugin", "--rootdir", folder, *words)
    assert "1 passed" in said and "gpumemtrace report" in said
    action, hook = map(yaml.safe_load, examples("ci.md", "yaml"))
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    assert set(action["jobs"]["memory"]["steps"][1]["with"]) <= set(inputs)
    known = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["repos"][0]["hooks"][0]["id"] in [h["id"] for h in known]
