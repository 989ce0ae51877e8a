# SPDX-License-Identifier: Apache-2.0
"""`replay`: what the model of PyTorch's allocator says against the program run with that setting; the whole comparison is
tests/replay/compare.py."""
import subprocess
import sys

import pytest

from conftest import BUILD, REAL, ROOT

sys.path.insert(0, str(ROOT / "tests/replay"))
import compare  # noqa: E402

MIB = 1 << 20
EXAMPLE = ROOT / "tests/data/example/new.gmt"
FITS = ROOT / "tests/data/example/old.gmt"


@pytest.mark.skipif(REAL or not (BUILD / "libsimgpu.so").exists(), reason="for the simulated device")
@pytest.mark.parametrize("program, conf", [("programs/generate_cache", "roundup_power2_divisions:4"),
                                           ("programs/graphs", "expandable_segments:True,roundup_power2_divisions:8"),
                                           ("programs/outside", "max_split_size_mb:32"),
                                           ("programs/evaluated", "max_split_size_mb:32"),
                                           ("programs/several_streams", "roundup_power2_divisions:4"),
                                           ("more/graphs_more", "expandable_segments:True")])
def test_the_same_segments_as_under_that_setting(tmp_path, program, conf):
    rows = compare.compare(ROOT / f"tests/replay/{program}.py", tmp_path, [conf], sys.executable)
    for setting, agree, requests, real, model, same in rows:
        assert same and requests > 100, setting
        assert (agree, model) == (requests, real), setting


def test_the_document(tool):
    confs = ["expandable_segments:True", "default", "max_split_size_mb:20"]
    answer = tool.json("replay", EXAMPLE, *(a for c in confs for a in ("--alloc-conf", c)))
    assert [s["alloc_conf"] for s in answer["settings"]] == confs
    assert answer["agreeing_requests"] == answer["requests"] > 0
    assert answer["best"] in confs
    for setting in answer["settings"]:
        assert answer["lower_bound_bytes"] <= setting["peak_bytes"] <= setting["peak_reserved_bytes"]
    assert answer["lower_bound_bytes"] <= answer["packed_bytes"]
    assert len(tool.json("replay", EXAMPLE)["settings"]) > 4


OWN = "arg0=0 thread=1 flags=256"
POOLS = f"""
thread 1 4711 main
thread 2 4712 other
meta torch.graphs on
event graph_begin {OWN} arg1=1
event mem_alloc addr=0x10000000 size={20 * MIB} arg0=1 flags=2 thread=1
event block_alloc addr=0x10000000 size={4 * MIB} arg0={4 * MIB} arg1={20 * MIB} thread=1
event graph_begin {OWN} arg1=2
event mem_alloc addr=0x20000000 size={20 * MIB} arg0=1 flags=2 thread=1
event block_alloc addr=0x20000000 size={4 * MIB} arg0={8 * MIB} arg1={40 * MIB} thread=1
event mem_alloc addr=0x30000000 size={20 * MIB} arg0=1 flags=2 thread=2
event block_alloc addr=0x30000000 size={4 * MIB} arg0={12 * MIB} arg1={60 * MIB} thread=2
event graph_end {OWN} arg1=2
event block_alloc addr=0x10400000 size={4 * MIB} arg0={16 * MIB} arg1={60 * MIB} thread=1
event graph_end {OWN} arg1=1
event block_alloc addr=0x30400000 size={4 * MIB} arg0={20 * MIB} arg1={60 * MIB} thread=1
event block_free addr=0x20000000 size={4 * MIB} arg0={16 * MIB} arg1={60 * MIB} thread=1
event block_free addr=0x30000000 size={4 * MIB} arg0={12 * MIB} arg1={60 * MIB} thread=1
event block_free addr=0x30400000 size={4 * MIB} arg0={8 * MIB} arg1={60 * MIB} thread=1
event mem_free addr=0x20000000 size={20 * MIB} arg0=1 flags=2 thread=1
event mem_alloc addr=0x40000000 size={20 * MIB} arg0=1 flags=2 thread=1
event block_alloc addr=0x40000000 size={30 * MIB} arg0={38 * MIB} arg1={70 * MIB} thread=1
"""


def test_pools_of_the_program(tool, tmp_path):
    """Of two nested ones the inner counts, for its thread alone; the one that is dropped goes without the common cache."""
    subprocess.run(["make", "-s", "build/data/make_recording"], cwd=ROOT, check=True)
    subprocess.run([ROOT / "build/data/make_recording", tmp_path / "pools.gmt"], input=POOLS, text=True, check=True)
    answer = tool.json("replay", tmp_path / "pools.gmt", "--alloc-conf", "default")
    assert answer["agreeing_requests"] == answer["requests"] == 9


def test_a_device_that_is_too_small(tool):
    fits = tool.json("replay", FITS, "--alloc-conf", "default")
    need = fits["settings"][0]["peak_reserved_bytes"]
    for capacity, refused in ((need, False), (fits["lower_bound_bytes"] // 2, True)):
        setting = tool.json("replay", FITS, "--alloc-conf", "default", "--capacity", capacity)["settings"][0]
        assert bool(setting["ooms"]) == refused
        assert setting["peak_reserved_bytes"] <= capacity


def test_a_setting_that_is_none(tool):
    tool("replay", EXAMPLE, "--alloc-conf", "no_such_thing:1", code=2)
    tool("replay", EXAMPLE, "--alloc-conf", "roundup_power2_divisions:3", code=2)
    tool("replay", EXAMPLE, "--capacity", "much", code=2)
    tool("replay", ROOT / "README.md", code=3)
    tool("replay", EXAMPLE, "--device", 7, code=2)
