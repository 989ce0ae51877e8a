# SPDX-License-Identifier: Apache-2.0
"""Random calls of runtime and driver that give and take memory. The program (tests/programs/random_calls.c) keeps its own account by
the results of its calls. The simulated device, and the recording, bounded or not, must say the same: peaks, what is live at them, the end.
GPUMEMTRACE_TEST_RANDOM=N tries N seeds of each (`make reliability`)."""
import json
import os
import subprocess

import pytest

from conftest import BUILD, ROOT

PROGRAM = BUILD / "programs/random_calls"
# Each can be left out, to find the one that is to blame.
RECORDED = ["linear", "async", "pools", "managed", "host", "arrays", "vmm", "graphs", "reset", "contexts", "refused", "devices"]
# A launch of a graph, and what else holds imported memory, are no events of a recording: these are about the device alone.
DEVICE_ALONE = ["relaunch", "share"]
MANY = int(os.environ.get("GPUMEMTRACE_TEST_RANDOM", "0"))


@pytest.fixture(scope="session", autouse=True)
def program():
    if not (BUILD / "libsimgpu.so").exists():
        pytest.skip("built without CUDA headers")
    subprocess.run(["make", "-s", "build/programs/random_calls"], cwd=ROOT, check=True)


def account(programs, seed, operations, groups, moments=6, traced=True, **more):
    """What the program says it held at some moments, {device: [...]}; it fails where the device says otherwise."""
    env = programs.environment(traced=traced, count=2, **more)
    done = subprocess.run([str(PROGRAM), str(seed), str(operations), str(moments), ",".join(groups)], env=env, cwd=programs.folder,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    said = json.loads(done.stdout)
    return {device: [s for s in said if s["device"] == device] for device in {s["device"] for s in said}}


def differences(programs, tool, seed, operations, groups, bound):
    """Each figure of the recording that is not the program's."""
    file = programs.folder / "run.gmt"
    file.unlink(missing_ok=True)
    truth = account(programs, seed, operations, groups, GPUMEMTRACE_OUTPUT=str(file), **({"GPUMEMTRACE_MAX_SIZE": bound} if bound else {}))
    report = {d["device"]: d for d in tool.json("report", file)["devices"]}
    assert not bound or int(tool.json("info", file)["meta"]["thinned.events"]) > 1000, "the bound is too wide for so few operations"
    found = []

    def compare(what, is_, should):
        if is_ != should:
            found.append(f"seed {seed}, {what}: {is_}, not {should}")

    def live(at):
        moment = tool.json("live", file, "--at", at, "--device", device)
        return moment["bytes"], len(moment["blocks"]), sum(b["size"] for b in moment["blocks"])

    for device, moments in truth.items():
        end = moments[-1]
        compare(f"device {device}, peak_bytes", report[device]["peak_bytes"], end["peak_bytes"])
        compare(f"device {device}, end_bytes", report[device]["end_bytes"], end["bytes"])
        compare(f"device {device}, live at peak", live("peak"), (end["peak_bytes"], end["peak_blocks"], end["peak_bytes"]))
        for i, said in enumerate(moments, 1):
            if bound and i < len(moments):
                continue  # the middle is thinned: its blocks are left out
            compare(f"device {device}, live at mark {i}", live(f"mark:account#{i}"), (said["bytes"], said["blocks"], said["bytes"]))
    return found


def blamed(programs, tool, seed, operations, bound):
    """The groups that differ with nothing but plain allocations beside them."""
    return [group for group in RECORDED if differences(programs, tool, seed, operations, ["linear", group], bound)]


def test_the_device_does_what_cuda_says(programs, record_property):
    seeds = range(1, 1 + (MANY or 8))
    for seed in seeds:
        account(programs, seed, 5000, RECORDED + DEVICE_ALONE, traced=False)
    record_property("figure", f"{len(seeds)} random programs of 5,000 operations: the device takes what their own account says")


@pytest.mark.parametrize("bound,operations,few", [pytest.param(None, 3000, 4, id="whole"), pytest.param("4MiB", 120000, 2, id="bounded")])
def test_the_recording_says_what_the_program_held(programs, tool, record_property, bound, operations, few):
    for seed in range(1, 1 + (MANY or few)):
        wrong = differences(programs, tool, seed, operations, RECORDED, bound)
        assert not wrong, "\n".join(wrong) + f"\nalone differ: {blamed(programs, tool, seed, operations, bound)}"
    record_property("figure", f"{seed} random programs of {operations:,} operations{f' within {bound}' if bound else ''}: every figure equal")
