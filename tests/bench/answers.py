# SPDX-License-Identifier: Apache-2.0
"""answers.py RECORDING REFUSED: what answers cost beside `verify`, which only decodes: "name value unit" lines. CPU time
is compared, the least of three runs each, memory is that for ten million events; beside each stands the most that
is promised. `oom` is asked of REFUSED, which ends with a request that the device refused."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from page import events

TOOL = Path(__file__).resolve().parents[2] / "build/gpumemtrace"
ROUNDS = 3
# command, runs over a recording, most times `verify`
ANSWERS = {
    "report": (("report", "--json", "{}"), 1, 4),
    "live": (("live", "--json", "{}"), 1, 4),
    "oom": (("oom", "--json", "{}"), 1, 4),
    "diff": (("diff", "--json", "{}", "{}"), 2, 4),
    "leaks": (("leaks", "--json", "{}"), 1, 5),
    "advise": (("advise", "--json", "{}"), 1, 8),
    "arrow": (("export", "--to", "arrow", "-o", "{out}.arrow", "{}"), 1, 8),
    "html": (("html", "-o", "{out}.html", "{}"), 1, 12),
}


def cost(arguments):
    """Seconds of CPU and MB of memory."""
    child = subprocess.Popen([TOOL, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, arguments
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def decoding(recording):
    """Seconds of CPU."""
    return min(cost(("verify", recording))[0] for _ in range(ROUNDS))


def measure(recording, refused):
    runs = {run: (decoding(run), events(run)) for run in (recording, refused)}
    decoded, count = runs[recording]
    yield "verify", f"{count / decoded:.0f}", "events/s"
    with tempfile.TemporaryDirectory() as folder:
        for name, (command, sides, most) in ANSWERS.items():
            run = refused if name == "oom" else recording
            decoded, count = runs[run]
            arguments = [a.replace("{out}", f"{folder}/out").replace("{}", str(run)) for a in command]
            costs = [cost(arguments) for _ in range(ROUNDS)]
            seconds, memory = min(s for s, _ in costs) / sides, min(m for _, m in costs) / sides
            yield f"answer.{name}", f"{seconds / decoded:.1f}", f"verify(most:{most})"
            yield f"answer.{name}.memory", f"{memory / count * 1e7:.0f}", "MB(most:300)"


if __name__ == "__main__":
    for name, value, unit in measure(*map(Path, sys.argv[1:])):
        print(f"{name:<42} {value:>12} {unit}", flush=True)
