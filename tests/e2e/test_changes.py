# SPDX-License-Identifier: Apache-2.0
"""Changes that `run --with` makes from outside: the values of the program stay what they are, as far as arithmetic allows, and its peak is
lower on the simulated device. What cannot be made is said."""
import importlib.util
import json
import math
import os
import re
import subprocess
import sys

import pytest

from conftest import BUILD, REAL, ROOT, WORKLOADS, made_once

sys.path.insert(0, str(ROOT / "python/gpumemtrace"))

from changes import ROWS, WrongChange, for_finding, parse  # noqa: E402

sys.path.remove(str(ROOT / "python/gpumemtrace"))  # where a module is called transformers

pytestmark = pytest.mark.skipif(REAL or not (BUILD / "libsimgpu.so").exists(), reason="for the simulated device")
FRAMEWORKS, MIB = ROOT / ".venv-frameworks/bin/python", 1 << 20
PROGRAM, TOOL = WORKLOADS / "changeable.py", BUILD / "gpumemtrace"


def here(part):
    """FILE:LINE of the mark in a part."""
    lines = PROGRAM.read_text().splitlines()
    begin = next(i for i, line in enumerate(lines) if f"def {part}(" in line)
    return f"changeable.py:{next(i for i, line in enumerate(lines[begin:], begin + 1) if line.endswith('# here'))}"


# change -> part of the program in which it lowers the peak
CHANGES = {
    "checkpoint=Block": "blocks", "checkpoint=Block/2": "blocks", "save_on_cpu": "blocks", "batch=1/2": "blocks", "batch=1/2@256": "own_batch", "batch=1/4": "stages",
    "attention=sdpa": "attention", "checkpoint=Attention;attention=sdpa": "attention", "foreach=off": "blocks", "fused": "blocks", "zero_grad=none": "set_to_zero", f"no_grad={here('evaluation')}": "evaluation",
    "frozen=bf16": "teacher", "autocast=bf16": "blocks", "parameters=bf16": "blocks", "state_on_cpu": "blocks", "optimizer=in_backward": "blocks",
    "idle_weights=cpu": "teacher", "loss=chunks": "vocabulary", f"kept={here('kept')}": "kept", f"del={here('held')}": "held",
    f"logits={here('in_float')}": "in_float", "use_cache=off": "cache", "hidden_states=off": "hidden_states", "prompt_logits=last": "prompt",
    "autocast_cache=off": "autocast", "memory_budget=0.5": "compiled",
}
# relative error of losses and weights
ERROR = {"exact": 0, "rounding": 1e-5, "precision": 2e-2, "other": 1e-5}  # other: of the results that the program uses
DEVICE_ONLY = {"idle_weights=cpu", "batch=1/2@256"}  # about what moves to a device
SAME_PEAK = {"foreach=off", "fused"}  # of an optimizer whose step is not the peak


def run_all(device, folder, cases, python=sys.executable):
    folder.mkdir()
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    if device == "cuda":
        env.update(LD_PRELOAD=str(BUILD / "libsimgpu.so"), LD_LIBRARY_PATH=str(BUILD / "simgpu"), SIMGPU_CARD="h100-80g")
    done = subprocess.run([python, WORKLOADS / "changed.py", device, folder, *cases], env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(zip(cases, map(json.loads, done.stdout.splitlines())))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """(device, part=change) -> what the program said."""
    cases = [f"{part}={change}" for change, part in CHANGES.items()] + [f"{part}=" for part in sorted(set(CHANGES.values()))]

    def make(folder):
        for device in ("cpu", "cuda"):
            (folder / f"{device}.json").write_text(json.dumps(run_all(device, folder / device, cases)))
    folder = made_once(tmp_path_factory, "changes", make)
    return {(device, case): row for device in ("cpu", "cuda") for case, row in json.loads((folder / f"{device}.json").read_text()).items()}


@pytest.mark.parametrize("change", CHANGES)
def test_values_stay(results, change):
    part, row = CHANGES[change], parse(change.split(";")[0]).row
    plain, changed = results["cpu", f"{part}="], results["cpu", f"{part}={change}"]
    assert changed["times"] or change in DEVICE_ONLY
    error = ERROR[row.equal]
    assert math.isclose(plain["weights"], changed["weights"], rel_tol=error or 1e-15)
    losses = changed["losses"]
    if row.name == "batch":  # the loss of a batch is the mean of its parts
        parts = int(change[len("batch=1/"):].partition("@")[0])
        losses = [sum(losses[i:i + parts]) / parts for i in range(0, len(losses), parts)]
    assert losses == pytest.approx(plain["losses"], rel=error or 1e-15) and plain["weights"] > 0


@pytest.mark.parametrize("change", CHANGES)
def test_the_peak_is_lower(results, change):
    part = CHANGES[change]
    plain, changed = results["cuda", f"{part}="], results["cuda", f"{part}={change}"]
    assert changed["times"] and (changed["peak"] < plain["peak"] or change in SAME_PEAK)


# ---- run --with ----

def run(tmp_path, changes, program, *options, sim=True, env=None):
    return subprocess.run([TOOL, "run", *(["--sim", "h100-80g"] if sim else []), "-o", tmp_path / "run.gmt", *options, *(f"--with={c}" for c in changes), "--",
                           sys.executable, *map(str, program)], capture_output=True, text=True, cwd=tmp_path, timeout=300, env={**os.environ, **(env or {})})


@pytest.mark.parametrize("change, words", [
    ("chekpoint=Block", "there is no change chekpoint; the nearest is checkpoint"), ("xyz", "there is no change xyz; there are "),
    ("checkpoint", "checkpoint needs the name of a class of modules, such as Block, or Block/2 for every second one"),
    ("checkpoint=Block/0", "checkpoint needs the name of a class"), ("batch=2", "batch needs a part such as 1/2"), ("fused=on", "fused takes no value"),
    ("attention=flash", "attention takes sdpa"), ("memory_budget=2", "memory_budget needs a number from 0 to 1"),
    ("no_grad=train", "no_grad takes frozen or a line of the program such as train.py:12, not train"), ("del=here", "del needs a line of the program"),
    ("allocator=a b", "allocator needs a setting such as expandable_segments:True")])
def test_wrong_changes(change, words):
    with pytest.raises(WrongChange, match=re.escape(f"--with {change}: {words}")):
        parse(change)


def test_a_wrong_change_starts_nothing(tmp_path):
    done = run(tmp_path, ["fused", "chekpoint=Block"], ["-c", "open('started', 'w')"])
    assert done.returncode == 2 and done.stderr == "gpumemtrace run: --with chekpoint=Block: there is no change chekpoint; the nearest is checkpoint\n"
    assert not (tmp_path / "started").exists()


def test_what_was_done_is_said(tmp_path):
    """Of two changes, one in a module that a sitecustomize of the program's own does not keep away; the recording names them."""
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.mine = 'its own sitecustomize ran'\n")
    program = f"import runpy, sys; print(mine); sys.argv = ['{PROGRAM}', 'blocks', 'cuda']; runpy.run_path(sys.argv[0], run_name='__main__')"
    done = run(tmp_path, ["checkpoint=Block", "cublas_workspace", "zero_grad"], ["-c", program], env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0 and done.stdout.startswith("its own sitecustomize ran")
    assert done.stderr.splitlines()[-3:] == [
        "gpumemtrace: checkpoint=Block: checkpointed 4 calls of Block a step", "gpumemtrace: cublas_workspace=:4096:2: set CUBLAS_WORKSPACE_CONFIG=:4096:2",
        "gpumemtrace: zero_grad=none: freed gradients right after 3 steps of optimizers"]
    meta = json.loads(subprocess.run([TOOL, "info", "--json", tmp_path / "run.gmt"], check=True, capture_output=True, text=True).stdout)["meta"]
    lines = json.loads(subprocess.run([TOOL, "report", "--json", tmp_path / "run.gmt"], check=True, capture_output=True, text=True).stdout)
    assert "changeable.py" in json.dumps(lines) and "changes_" not in json.dumps({**lines, "command": ""})
    assert {"env.GPUMEMTRACE_WITH": "checkpoint=Block;cublas_workspace=:4096:2;zero_grad=none"}.items() <= meta.items()


def test_nothing_matched(tmp_path):
    """The program is a child of another, and ends well; as JSON too."""
    program = ["-c", f"import subprocess, sys; subprocess.run([sys.executable, '{PROGRAM}', 'blocks', 'cuda'], check=True)"]
    done = run(tmp_path, ["checkpoint=Blok", "fused"], program, "--json")
    answer = json.loads(done.stderr.splitlines()[-1])
    assert done.returncode == 1 and answer["exit_code"] == 0
    assert answer["changes"] == [
        {"change": "checkpoint=Blok", "times": 0, "text": "no module of class Blok was called in a forward pass with a graph; "
         "the classes that were called: Block, LayerNorm, Linear, Sequential"},
        {"change": "fused", "times": 1, "text": "made 1 optimizers with fused=True"}]


def test_a_program_without_torch(tmp_path):
    done = run(tmp_path, ["fused"], ["-c", "import sys; sys.exit(7)"], sim=False)
    assert done.returncode == 7 and "not made: fused: no Python of the program imported torch" in done.stderr.splitlines()[-1]
    assert run(tmp_path, ["fused"], ["-c", "pass"], "--quiet", sim=False).returncode == 1


@pytest.mark.more
def test_rows_of_a_program_without_a_loader(tmp_path):
    done = run(tmp_path, ["batch"], [PROGRAM, "own_batch", "cuda"])
    assert done.returncode == 1 and done.stderr.splitlines()[-1].endswith("the model was called with 256 rows; give batch=1/2@256 if its batches have that many rows")


@pytest.mark.more
def test_a_compiled_model(tmp_path):
    done = run(tmp_path, ["memory_budget=0"], [PROGRAM, "compiled", "cuda"])
    assert done.returncode == 0 and "compiled 1 models with that budget" in done.stderr


def peaks(tmp_path, part, *changes):
    """Of blocks and of reserved memory."""
    assert run(tmp_path, changes, [PROGRAM, part, "cuda"]).returncode == 0
    device = json.loads(subprocess.run([TOOL, "report", "--json", tmp_path / "run.gmt"], check=True, capture_output=True, text=True).stdout)["devices"][0]
    return device["peak_bytes"], device["peak_reserved_bytes"]


def test_settings_of_the_environment(tmp_path):
    """Expandable segments reserve less for pieces of many sizes; two workspaces of cuBLAS are smaller than those of a card of that generation."""
    plain, expanded, less = (peaks(tmp_path, "pieces", *changes) for changes in ((), ("allocator=expandable_segments:True",), ("cublas_workspace=:16:8",)))
    assert expanded[0] <= plain[0] and expanded[1] < plain[1] and less[0] < plain[0] - MIB


@pytest.mark.more
@pytest.mark.skipif(not FRAMEWORKS.exists(), reason="scripts/setup.sh frameworks")
def test_state_in_8_bits(tmp_path):
    """Adam's two values for each weight take a quarter; torchao computes on the CPU too."""
    plain, changed = (run_all("cuda", tmp_path / name, [f"adam={change}"], FRAMEWORKS)[f"adam={change}"] for name, change in (("plain", ""), ("less", "state=8bit")))
    weights = 4 * (64 * 4096 + 4096 + 8 * 4096 + 8)
    assert changed["times"] == 1 and plain["peak"] - changed["peak"] == pytest.approx(1.5 * weights, rel=0.2)
    plain, changed = (run_all("cpu", tmp_path / f"{name}cpu", [f"adam={change}"], FRAMEWORKS)[f"adam={change}"] for name, change in (("plain", ""), ("less", "state=8bit")))
    assert changed["losses"] == pytest.approx(plain["losses"], rel=2e-2) and math.isclose(changed["weights"], plain["weights"], rel_tol=2e-2) and plain["weights"]


@pytest.mark.more
@pytest.mark.skipif(not importlib.util.find_spec("transformers"), reason="transformers is not installed")
def test_programs_edited_by_hand(tmp_path):
    """As the answer says how to write a change, and with the change made from outside: one peak."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "LD_PRELOAD": str(BUILD / "libsimgpu.so"), "LD_LIBRARY_PATH": str(BUILD / "simgpu"), "SIMGPU_CARD": "h100-80g"}
    done = subprocess.run([sys.executable, ROOT / "tests/remedies/edited.py", tmp_path], env=env, capture_output=True, text=True, timeout=1800)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) >= 10 and done.returncode == 0, done.stderr[-3000:]
    for row in rows:
        assert row["made"] == pytest.approx(row["edited"], rel=3e-3) and row["edited"] > 0 and row["edited"] != row["plain"], row


# ---- the table ----

def test_every_row_is_made_somewhere():
    """A function for each, and an example in its own words."""
    for row in ROWS:
        module, _, function = row.make.partition(":")
        text = (ROOT / f"python/gpumemtrace/changes/{module}.py").read_text() if function else ""
        assert not function or re.search(rf"^def {function}\(change, noted, say\)", text, re.M), row.name
        assert row.cost and row.how and (not function or row.done and row.failed) and row.slowdown >= 1
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_words_of_findings_have_their_figures():
    """A name in braces that finding_words.c does not know would have no figure."""
    words, figures = ((ROOT / "viewer/advise" / name).read_text() for name in ("findings.def", "finding_words.c"))
    assert set(re.findall(r"{(\w+)[:}]", words)) == set(re.findall(r'^\t\t{ "(\w+)", ', figures, re.M))


def test_findings_have_their_changes():
    """Of every kind of finding and remedy that the table names; the others have none."""
    named = {kind for row in ROWS for kind in row.kinds}
    known = set(re.findall(r"^(?:FINDING|NAME|REMEDY|FOUND)\((\w+)", "".join((ROOT / f"viewer/{p}").read_text() for p in ("advise/findings.def", "oom/oom_remedies.def")), re.M))
    known |= set(re.findall(r"^FOUND\(\w+, (\w+)", (ROOT / "viewer/oom/oom_remedies.def").read_text(), re.M))
    assert named <= known
    finding = {"what": "Checkpoint Block (30 calls)", "function": "Block.forward", "file": "/a/b/train.py", "line": 12}
    assert for_finding({**finding, "kind": "checkpoint"}) == ["checkpoint=Block"] and for_finding({**finding, "kind": "no_grad"}) == ["no_grad=b/train.py:12"]
    assert for_finding({**finding, "kind": "attention"}) == ["attention=sdpa@Block.forward"] and for_finding({**finding, "kind": "shard_state"}) == []
    assert for_finding({"name": "smaller_batch", "what": "Halve the batch"}) == ["batch=1/2"] and for_finding({"name": "fused_optimizer", "what": ""}) == ["fused"]
    assert for_finding({"kind": "allocator", "what": "Set PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64: x"}) == ["allocator=max_split_size_mb:64"]
    assert for_finding({"kind": "less_workspace", "what": "Set CUBLAS_WORKSPACE_CONFIG=:16:8 in the environment: x"}) == ["cublas_workspace=:16:8"]
    assert for_finding({"name": "less_workspace", "what": "Limit workspaces: CUBLAS_WORKSPACE_CONFIG=:4096:2, or fewer streams"}) == ["cublas_workspace=:4096:2"]


def test_the_page_has_the_table():
    sys.path.insert(0, str(ROOT / "scripts"))
    import changes_page
    assert changes_page.PAGE.read_text() == changes_page.page(), "scripts/changes_page.py --write"
