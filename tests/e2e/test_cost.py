# SPDX-License-Identifier: Apache-2.0
"""What an event costs, by counts that hold on a busy machine: instructions of the calls that record a training
step's events, and bytes of the recording. docs/cost.md says where they go; the limits leave some room above that."""
import platform
import re
import subprocess

import pytest
from conftest import BUILD, ROOT

MOST_INSTRUCTIONS = {"all": 850, "none": 180}
MOST_BYTES = 4.5


@pytest.fixture(scope="session")
def counter(tmp_path_factory):
    if platform.machine() != "x86_64":
        pytest.skip("single steps are counted on x86-64")
    library = tmp_path_factory.mktemp("count") / "count.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, ROOT / "tests/e2e/count_instructions.c"], check=True)
    symbols = subprocess.run(["nm", BUILD / "libgpumemtrace.so"], capture_output=True, text=True, check=True).stdout
    return {"COUNT_LIBRARY": library, "COUNT_AT": re.search(r"^(\w+) t gmt_capture_from$", symbols, re.M).group(1)}


@pytest.mark.parametrize("stacks", MOST_INSTRUCTIONS)
def test_cost_of_an_event(programs, tool, counter, stacks):
    preload = f"{BUILD / 'libgpumemtrace.so'}:{BUILD / 'libsimgpu.so'}:{counter['COUNT_LIBRARY']}"
    recording = programs.folder / "run.gmt"
    done = programs("cost.py", GPUMEMTRACE_OUTPUT=recording, LD_PRELOAD=preload, GPUMEMTRACE_STACKS=stacks, **counter)
    found = re.search(r"calls (\d+) counted (\d+) instructions (\d+)", done.stdout)
    assert found, done.stdout[-1000:] + done.stderr[-4000:]
    calls, counted, instructions = map(int, found.groups())
    events = tool.json("report", recording)["events"]
    assert calls > 1000 and counted >= calls // 11
    assert 50 < instructions / counted <= MOST_INSTRUCTIONS[stacks], f"{instructions / counted:.0f} an event"
    assert 1 < recording.stat().st_size / events <= MOST_BYTES, f"{recording.stat().st_size / events:.2f} bytes an event"
