# SPDX-License-Identifier: Apache-2.0
"""Every block of Python in the documents runs as it is written, alone, with its own imports; the commands and options of
docs/ci.md too."""
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from conftest import BUILD, PACKAGE, ROOT

pytestmark = pytest.mark.installed
TOOLS, TRAINERS, SPARK = (ROOT / f".venv-{name}/bin/python" for name in ("tools", "trainers", "spark"))
EXAMPLE = ROOT / "tests/data/example"
CI = "docs/ci.md"  # its test is run with every option: test_ci
PAGES = sorted(str(p.relative_to(ROOT)) for p in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("python/*.md"))
               if "\n```python\n" in p.read_text() and p != ROOT / CI)
RECORDED = [BUILD / "gpumemtrace", "run", "-q", "--sim", "h100-80g", "-o", "run.gmt", "--"]
SAID = {"import duckdb, pandas": "block_alloc", "from transformers import": "\n4 ", "lightning.GpuMemory": "max_steps=4",
        "r.diff(": r"23444927488(?s:.*)retained_graph(?s:.*)False \['peak 21.8 GiB: 5.8 GiB more than the 16.0 GiB"}


def examples(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.M | re.S)


def all_blocks():
    for page in PAGES:
        for i, block in enumerate(re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S), 1):
            yield pytest.param(block, id=f"{page}-{i}")


@pytest.fixture
def folder(tmp_path):
    for name in "old.gmt", "new.gmt":
        shutil.copy(EXAMPLE / name, tmp_path)
    return tmp_path


def run(folder, *command, code=0, **more):
    env = {**os.environ, "PYTHONPATH": str(PACKAGE), "PATH": f"{BUILD}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1", **more}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def needed(python, name):
    if not python.exists():
        pytest.skip(f"no .venv-{name}: scripts/setup.sh {name}")
    return python


def start(folder, block):
    """What runs a block: the first environment that has what it imports; what trains is recorded on the simulated device."""
    if "pytest.mark" in block:
        return [sys.executable, "-m", "pytest", "-q", "-p", "gpumemtrace.pytest_plugin", "--rootdir", folder]
    if "pyspark" in block:
        return ["env", f"PYSPARK_PYTHON={SPARK}", needed(SPARK, "spark")]
    if re.search(r"^(?:import|from) lightning", block, re.M):
        (packages,) = needed(TRAINERS, "trainers").parents[1].glob("lib/python3*/site-packages")
        return [*RECORDED, "env", f"PYTHONPATH={PACKAGE}:{packages}", sys.executable]
    if re.search(r"^import .*(?:duckdb|polars|pandas|pyarrow)", block, re.M):
        return [needed(TOOLS, "tools")]
    return [*RECORDED, sys.executable] if re.search(r"^import torch", block, re.M) else [sys.executable]


@pytest.mark.parametrize("block", list(all_blocks()))
def test_block_runs(folder, block):
    run(folder, BUILD / "gpumemtrace", "collect", "old.gmt", "new.gmt", "-o", "lake")
    block = block.replace("s3a://bucket/runs", str(EXAMPLE)).replace("s3a://bucket/lake/ranks", "ranks").replace("s3a://bucket/lake", "lake")
    command = start(folder, block)
    (folder / "test_block.py").write_text(block)
    said = run(folder, *command, "test_block.py")
    for part, pattern in SAID.items():
        assert part not in block or re.search(pattern, said), said
    assert "pytest.mark" not in block or "1 passed" in said


def test_a_recorded_program_says_something_itself(folder):
    """Recorded, the block of `mark` and `snapshot` prints the peak; not recorded it prints nothing."""
    (block,) = (b for b in examples("python.md", "python") if "gpumemtrace.snapshot" in b)
    assert run(folder, sys.executable, "-c", block) == ""
    took = "import torch\nx = torch.ones(1 << 20, device='cuda')\n" + block
    assert run(folder, *RECORDED, sys.executable, "-c", took) == f"{4 << 20}\n"


def test_ci(folder):
    (folder / "train.py").write_text("import torch\nx = torch.ones(1 << 20, device='cuda')\n")
    (commands,) = examples("ci.md", "sh")
    record, bounds, baseline = (line.split()[1:] for line in commands.splitlines())
    run(folder, BUILD / "gpumemtrace", *[sys.executable if w == "python" else str(folder / "run.gmt") if w == "new.gmt" else w for w in record])
    assert run(folder, BUILD / "gpumemtrace", *bounds, code=1).count("\n") >= 3
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


@pytest.mark.skipif(not TOOLS.exists(), reason="no .venv-tools: scripts/setup.sh tools")
def test_other_tools_read_a_lake(folder):
    run(folder, BUILD / "gpumemtrace", "collect", "old.gmt", "new.gmt", "-o", "lake")
    look = "\nprint(len(ranks.fetchall() if hasattr(ranks, 'fetchall') else ranks))\n"
    for example in examples("lake.md", "python")[:4]:
        assert run(folder, TOOLS, "-c", example + look).split() == ["2"], example
