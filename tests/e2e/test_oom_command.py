# SPDX-License-Identifier: Apache-2.0
"""`oom` on programs that run out of memory for a known reason: it names that reason, agrees with the numbers of
PyTorch's own message, and what it says would have helped does help when it is done."""
import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT, with_more

pytestmark = pytest.mark.forks

MIB = 1 << 20
CARD = "card=2GiB"

# case: cause, the function and the class that hold most
CASES = {
    "batch_too_large": ("batch_too_large", "Layer.forward", "activations"),
    "retained_graph": ("retained_graph", "Layer.forward", "activations"),
    "fragmentation": ("fragmentation", "fragmentation", None),
    "other_process": ("other_process", "Layer.forward", "activations"),
    "optimizer_state": ("model_too_large", None, None),
    "activation_spike": ("activation_spike", "Net.forward", None),
    "workspace": ("workspace", "workspace", None),
    "memory_limit": ("memory_limit", "Layer.forward", "activations"),
    "evaluation_graph": ("batch_too_large", "Layer.forward", "activations"),  # until then a backward pass over all calls may come
    "validation": ("retained_graph", "Layer.forward", "activations"),
    "outputs": ("retained_graph", "Net.forward", "forward_temporaries"),
    "growing": ("growing", "<lambda>", None),
    "holes": ("fragmentation", None, None),
    "optimizer_temporaries": ("model_too_large", None, None),
    "model_too_large": ("model_too_large", "model_too_large", "parameters"),
    "backward": ("batch_too_large", "Layer.forward", "activations"),
    "caught": ("batch_too_large", "Layer.forward", "activations"),
    "kv_cache": ("growing", "kv_cache", None),
    "only_held": ("unknown", "only_held", "unknown"),
    "batch_grows": ("batch_too_large", "Layer.forward", "activations"),
}


def settings(case):
    return {"SIMGPU_TAKEN": "1100MiB"} if case == "other_process" else {}


def staged(programs, tool, case):
    recording = programs.traced("oom.py", case, "truth.json", card=CARD, **settings(case))
    truth = json.loads((programs.folder / "truth.json").read_text())
    assert truth["ooms"], truth
    return tool.json("oom", recording, "--nth", 1), truth, recording


def near(said, truth):
    """PyTorch rounds to a hundredth of its unit."""
    unit = next(u for u in (1 << 30, MIB, 1 << 10, 0) if truth >= u)
    return abs(said - truth) <= 0.006 * unit


def check_numbers(said, truth):
    """Asked, total, free, allocated, cached: in the order of PyTorch's message (a limit is a number more)."""
    asked, total, free, *rest = truth["said"]
    assert near(said["asked_bytes"], asked)
    assert near(said["total_bytes"], total)
    assert near(said["free_bytes"], free)
    allocated, cached = rest[-2:]
    assert near(said["allocated_bytes"], allocated)
    assert near(said["cached_bytes"], cached)
    assert said["reserved_bytes"] == said["allocated_bytes"] + said["cached_bytes"]
    assert sum(said["categories"].values()) == said["allocated_bytes"] == sum(h["bytes"] for h in said["holders"])


@pytest.mark.parametrize("case", CASES)
def test_cause(programs, tool, case):
    cause, function, category = CASES[case]
    said, truth, recording = staged(programs, tool, case)
    assert said["cause"] == cause, said["text"]
    assert said["recording"] == str(recording) and (said["file"].endswith("oom.py") or not said["file"])
    if "Tried to allocate" in truth["message"]:
        check_numbers(said, truth)
    holders = said["holders"]
    assert holders == sorted(holders, key=lambda h: -h["bytes"])
    if function:
        assert holders[0]["function"].split(".")[-1] == function.split(".")[-1]  # qualified since CPython 3.11
    if category:
        assert holders[0]["class"] == category
    assert bool(said["remedies"]) == (cause != "unknown")
    assert all(r["what"] and r["how_known"] and r["saves_bytes"] > 0 for r in said["remedies"])
    check_text(tool, recording, said)
    assert said["went_on"] == (case == "caught")
    if case == "evaluation_graph":
        assert "forward passes hold them, and there was no backward pass" in said["text"]
    if case == "validation":
        assert "from pass to pass" in said["text"] and "last tensor of each pass was made by loss_of oom.py" in said["text"]


def check_text(tool, recording, said):
    """The same cause and the ten lines, in 80 columns where no name is longer."""
    text = tool("oom", recording, "--nth", 1)
    assert "Cause: %s." % said["cause"] in text
    assert re.sub(r"\s+", "", said["text"]) in re.sub(r"\s+", "", text)
    for remedy in said["remedies"]:
        assert re.sub(r"\s+", "", remedy["what"]) in re.sub(r"\s+", "", text)
    assert len(re.findall(r"iB +this request ", text)) == sum(r["enough"] for r in said["remedies"])


# case: ranks, card, cause
RANKS = {
    "fsdp": (2, "card=2165MiB", "unsharded"),
    "all_gather": (2, "card=1GiB", "unsharded"),
    "gather_by_hand": (2, "card=768MiB", "unsharded"),
    "uneven": (2, CARD, "batch_too_large"),
}


def run_ranks(programs, case, ranks, card):
    done = programs("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}",
                    programs.workload("oom.py"), case, "truth.json", count=ranks, card=card,
                    GPUMEMTRACE_OUTPUT="run.%r.gmt")
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("case", with_more(RANKS, {"gather_by_hand"}))
def test_ranks(programs, tool, case):
    ranks, card, cause = RANKS[case]
    run_ranks(programs, case, ranks, card)
    said = tool.json("oom", programs.folder)
    first = min((r for r in said["ranks"] if r["failed"]), key=lambda r: r["wall_ns"])
    assert said["ranks"][0] == first and said["rank"] == first["rank"] and len(said["ranks"]) == ranks
    if case == "uneven":
        assert first["rank"] == "rank 1"
    truth = json.loads((programs.folder / ("truth.json." + first["rank"].split()[1])).read_text())
    assert said["cause"] == cause, said["text"]
    check_numbers(said, truth)
    assert first["rank"] in tool("oom", programs.folder)


@pytest.mark.parametrize("card", with_more(["card=2GiB", "card=2400MiB", "card=3GiB"], {"card=2400MiB", "card=3GiB"}))
def test_layers_that_are_sharded_by_themselves(programs, tool, card):
    """Memory runs out in a backward pass, which makes whole gradients, or in the optimizer: nothing is left to shard."""
    run_ranks(programs, "sharded_layers", 2, card)
    said = tool.json("oom", programs.folder)
    assert said["cause"] != "unsharded" and "gather_less" not in {r["name"] for r in said["remedies"]}, said["text"]


# A step had ended where a case trains more than one.
@pytest.mark.parametrize("case, ended", [("batch_too_large", False), ("batch_grows", True)])
def test_what_may_come_after_the_request(programs, tool, case, ended):
    _, _, recording = staged(programs, tool, case)
    assert ("No step had ended" in tool("oom", recording, "--nth", 1)) != ended


# case: the remedy's name, as it is called in the script or as an environment
REMEDIES = {
    "batch_too_large": [("smaller_batch", {}), ("checkpoint", {})],
    "validation": [("no_grad", {})],
    "optimizer_temporaries": [("foreach_off", {})],
    "holes": [("allocator", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})],
}


@pytest.mark.parametrize("case", REMEDIES)
def test_what_would_help_does(programs, tool, case):
    said, _, _ = staged(programs, tool, case)
    for name, environment in REMEDIES[case]:
        told = next(r for r in said["remedies"] if r["name"] == name)
        assert told["enough"], told
        programs.traced("oom.py", case, "after.json", name, output="after.gmt", card=CARD, **environment)
        after = json.loads((programs.folder / "after.json").read_text())
        assert not after["ooms"], after.get("message")


def test_no_failure_is_one_sentence(tool):
    golden = os.path.join(os.path.dirname(__file__), "../data/v1/training.gmt")
    assert tool("oom", golden, code=1) == ""
    assert tool("oom", golden, "--nth", -1, code=2) == ""


def test_a_request_larger_than_the_device(programs, tool):
    done = programs("-c", "import torch\na = torch.zeros(64 << 20, dtype=torch.uint8, device='cuda')\n"
                    "torch.zeros(3 << 30, dtype=torch.uint8, device='cuda')", card=CARD, GPUMEMTRACE_OUTPUT="x.gmt")
    assert "CUDA out of memory" in done.stderr
    text = " ".join(tool("oom", programs.folder / "x.gmt").split())
    assert "Cause: activation_spike." in text  # one operator's result
    assert "The request alone is larger than the device: 3.0 GiB were requested, and the device has 2.0 GiB." in text


def test_a_folder_without_recordings(tool, tmp_path):
    assert tool("oom", tmp_path, code=3) == ""
    (tmp_path / "run.gmt").write_bytes(b"")
    assert tool("oom", tmp_path, code=3) == ""


@pytest.mark.parametrize("file,words", [("v3/thinned", "this recording, which stops before the run's end (a snapshot, or recovered)"), ("bad/half_block", "can be read: the file is damaged (see gpumemtrace verify)"),
                                        ("bad/no_end", "has no end: the program was killed or crashed, or the file was cut")])
def test_no_refusal_in_what_there_is(tool, file, words):
    """Where a part of the recording is missing, memory may have run out in that part."""
    done = subprocess.run([tool.path, "oom", ROOT / f"tests/data/{file}.gmt"], capture_output=True, text=True)
    assert done.returncode == 1 and "memory did not run out" in done.stderr and done.stderr.endswith(words + "\n"), done.stderr


def test_no_refusal_in_ranks_that_are_not_whole(tool, tmp_path):
    whole = (ROOT / "tests/data/example/old.gmt").read_bytes()
    for rank, size in enumerate([len(whole), len(whole) // 2, len(whole) - 8]):
        (tmp_path / f"{rank}.gmt").write_bytes(whole[:size])
    pid = tool.json("info", tmp_path / "0.gmt")["pid"]
    done = subprocess.run([tool.path, "oom", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == (
        f"gpumemtrace oom: memory did not run out in any of these recordings; not whole (see gpumemtrace verify): process {pid}, process {pid}\n")


ALONE = """
import os
import torch
import torch.distributed as dist
kept = [torch.empty(8 << 20, dtype=torch.uint8, device="cuda")]
if NCCL:
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    dist.all_reduce(torch.ones(4, device="cuda"))
try:
    while True:
        kept.append(torch.empty(EACH << 20, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError:
    pass
if dist.is_initialized():
    dist.destroy_process_group()
"""


@pytest.mark.parametrize("nccl, each, conf", [(True, 64, ""), (False, 17, "backend:cudaMallocAsync")])
def test_no_other_process(programs, tool, nccl, each, conf):
    """A single rank loads NCCL's kernels too, and a pool of the driver keeps what its pieces do not fill: nobody else is on the device."""
    (programs.folder / "alone.py").write_text(ALONE.replace("NCCL", str(nccl), 1).replace("EACH", str(each)))
    said = tool.json("oom", programs.traced(str(programs.folder / "alone.py"), card="small=2GiB", PYTORCH_CUDA_ALLOC_CONF=conf))
    assert said["context_bytes"] > 600 << 20 and said["other_bytes"] == 0 and said["cause"] != "other_process"
