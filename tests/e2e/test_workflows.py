# SPDX-License-Identifier: Apache-2.0
"""Workflows, the action and the workflows that documents show, under actionlint: keys, expressions, contexts."""
import re
import shutil
import subprocess

import pytest
import yaml
from conftest import ROOT

pytestmark = pytest.mark.skipif(not shutil.which("actionlint"), reason="no actionlint on the PATH")
INPUTS = {"type": "string", "default": ""}


def complaints(folder, **workflows):
    """What actionlint says of these as the workflows of a repository."""
    place = folder / ".github/workflows"
    place.mkdir(parents=True)
    for name, text in workflows.items():
        (place / f"{name}.yml").write_text(text)
    (folder / ".git").mkdir()
    done = subprocess.run(["actionlint", "-shellcheck="], cwd=folder, capture_output=True, text=True, timeout=600)
    return done.stdout + done.stderr


def as_workflow(action):
    """The steps of a composite action as a job, its inputs as those of a workflow that others call. (actionlint reads workflows only.)"""
    document = yaml.safe_load(action)
    call = {"inputs": {name: dict(INPUTS) for name in document["inputs"]},
            "outputs": {name: {"value": "${{ jobs.all.outputs.%s }}" % name} for name in document["outputs"]}}
    job = {"runs-on": "ubuntu-24.04", "outputs": {name: o["value"] for name, o in document["outputs"].items()}, "steps": document["runs"]["steps"]}
    return yaml.safe_dump({"on": {"workflow_call": call}, "jobs": {"all": job}}, sort_keys=False)


def test_workflows_of_the_repository(tmp_path):
    found = {p.stem: p.read_text() for p in (ROOT / ".github/workflows").glob("*.yml")}
    assert len(found) >= 3 and complaints(tmp_path, **found) == ""


def test_the_action(tmp_path):
    text = as_workflow((ROOT / "action.yml").read_text())
    assert "inputs.comment == 'true'" in text and complaints(tmp_path / "good", good=text) == ""
    assert 'property "comments" is not defined' in complaints(tmp_path / "bad", bad=text.replace("inputs.comment ==", "inputs.comments =="))


@pytest.mark.parametrize("page", ["README.md", "docs/ci.md"])
def test_workflows_that_documents_show(tmp_path, page):
    shown = [text for text in re.findall(r"^```yaml\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S) if "\njobs:" in text]
    assert len(shown) == 1 and complaints(tmp_path, **{f"w{i}": text for i, text in enumerate(shown)}) == ""
