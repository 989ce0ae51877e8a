# SPDX-License-Identifier: Apache-2.0
"""What a call's result says it did is what is recorded: memory whose free CUDA refused is still there, with its stack,
and the refusal is an event."""
import re
import subprocess

import pytest

from conftest import BUILD, ROOT

KINDS = {"cudaFree": "mem_free", "cudaFreeHost": "mem_free", "cudaHostUnregister": "mem_free", "cudaFreeAsync": "mem_free", "cuMemFree_v2": "mem_free",
         "cudaFreeArray": "mem_free", "cudaIpcCloseMemHandle": "mem_free", "cudaMemPoolDestroy": "pool_destroy", "cuMemRelease": "phys_release",
         "cuMemUnmap": "unmap", "cuMemAddressFree": "va_release", "cuCtxDestroy_v2": "ctx_destroy", "cuDevicePrimaryCtxReset_v2": "ctx_destroy",
         "cuModuleUnload": "code_unload"}


def number_of(kind):
    return int(re.search(rf'^EVENT\(\w+, (\d+), \w+, "{kind}"', (ROOT / "format/records.def").read_text(), re.M)[1])


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """(what the program said, its recording)"""
    subprocess.run(["make", "-s", "build/programs/refused"], cwd=ROOT, check=True)
    path = tmp_path_factory.mktemp("refused") / "run.gmt"
    done = subprocess.run([BUILD / "gpumemtrace", "run", "--sim", "h100-80g", "-o", path, "--", BUILD / "programs/refused"],
                          capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()], path


def test_each_call_is_what_its_result_says(tool, refused):
    said, path = refused
    calls = [(name, int(addr, 16), int(rc)) for name, addr, rc in said if name != "left"]
    assert sum(rc != 0 for _, _, rc in calls) >= len(KINDS), calls
    assert {name for name, _, rc in calls if rc} == set(KINDS)
    noted = [e for e in tool.events(path) if e.get("name") in KINDS]
    assert len(noted) == len(calls)
    for e, (name, addr, rc) in zip(noted, calls):
        kind = KINDS[name]
        assert (e["name"], e["addr"]) == (name, addr)
        assert e["stack"] > 0
        if rc:
            assert (e["kind"], e["refused"], e["arg0"], e["arg1"]) == ("refused", kind, number_of(kind), rc)
        else:
            assert e["kind"] == kind


def test_what_was_refused_is_still_there(tool, refused):
    said, path = refused
    left = {int(addr, 16): int(size) for name, addr, size in said if name == "left"}
    live = tool.json("live", path, "--at", "end")
    assert {b["addr"]: b["size"] for b in live["blocks"]} == left
    assert all(b["stack"] > 0 for b in live["blocks"])
    (device,) = tool.json("report", path)["devices"]
    assert device["end_bytes"] == sum(left.values())
    assert device["peak_bytes"] == device["end_bytes"]
    assert tool.json("report", path)["frees"] == 1
    assert tool.json("report", path)["dropped"] == 0
