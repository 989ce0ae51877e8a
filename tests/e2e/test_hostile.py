# SPDX-License-Identifier: Apache-2.0
"""Names of ten million bytes, with markup, quotes, bytes that are no text and what steers a terminal: in snapshots and
in programs that are recorded. Every command answers within seconds and in bounded room, and what it says can be
printed and parsed."""
import json
import os
import pickle
import subprocess

import pytest

from conftest import Programs, Tool
from test_import import entry, segment

MIB, BASE = 1 << 20, 0x7F0000000000
BAD = "</script><b>\x1b]0;x\x07\x1b[31m\u202e\"'\\%n\u009b2J\udcff\n"
LONG = BAD + "N" * (10 * MIB)

# What is asked of a recording; OUT is a file to write.
COMMANDS = ["report", "report --steps", "live --at peak", "live --at oom", "peak", "timeline", "leaks", "oom", "top", "steps", "modules", "account", "flame",
            "info", "dump", "verify", "why 0x7f0000000000", "stack 1", "stack 2", "html -o OUT.html", "html --redact -o OUT.html", "recover -o OUT.gmt",
            "export --to torch -o OUT", "export --to perfetto -o OUT", "export --to speedscope -o OUT", "export --to folded -o OUT", "export --to pprof -o OUT",
            "export --to csv -o OUT", "export --to jsonl -o OUT", "export --to arrow -o OUT"]

PROGRAM = """
import sys, torch
bad = sys.argv[1] + "N" * (10 << 20)
scope = {"torch": torch}
exec(compile("def f():\\n  return torch.empty(8 << 20, device='cuda', dtype=torch.uint8)\\n", "/home/" + bad + ".py", "exec"), scope)
f = scope["f"]
f.__code__ = f.__code__.replace(co_name=bad)
with torch.profiler.record_function(bad.encode("utf-8", "ignore").decode()):
    kept = f()
try:
    torch.empty(1 << 45, device="cuda")
except torch.OutOfMemoryError:
    pass
"""


def snapshot():
    frames = [{"name": LONG, "filename": "/home/" + LONG + ".py", "line": 7}, {"name": "main" + BAD, "filename": BAD, "line": 1}]
    more = {"frames": frames, "user_metadata": LONG}
    one = segment(BASE, 20 * MIB, [(8 * MIB, 8 * MIB, "active_allocated"), (12 * MIB, 0, "inactive")], **more)
    one["blocks"][0]["frames"] = frames
    return {"segments": [one], "allocator_settings": {LONG: LONG},
            "device_traces": [[entry("segment_alloc", BASE, 20 * MIB, 10, **more), entry("alloc", BASE, 8 * MIB, 20, **more),
                               entry("alloc", BASE + 8 * MIB, 4 * MIB, 30, **more), entry("oom", 5, 64 * MIB, 40, **more),
                               entry("free_requested", BASE + 8 * MIB, 4 * MIB, 50, **more), entry("free_completed", BASE + 8 * MIB, 4 * MIB, 50, **more)]],
            "external_annotations": [{"name": LONG, "stage": s, "device": 0, "time_us": t} for s, t in (("START", 15), ("END", 45))]}


@pytest.fixture(scope="module", params=["snapshot", "imported", "recorded"])
def recording(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "recorded":
        path = Programs(folder).traced("-c", PROGRAM, BAD.replace("\n", ""))
        assert os.path.getsize(path) < 4 * MIB
        return path
    packed = folder / "s.pickle"
    packed.write_bytes(pickle.dumps(snapshot(), 4))
    if request.param == "imported":
        Tool()("import", packed, "-o", folder / "s.gmt")
    return folder / "s.gmt" if request.param == "imported" else packed


def ask(recording, command, *more):
    word, *rest = command.split()
    done = subprocess.run([Tool.path, word, recording, *rest, *more], capture_output=True, timeout=600)
    # No sentence but of what is not there, and that in one line.
    assert done.returncode == 0 or (done.returncode == 2 and done.stderr.count(b"\n") == 1), (command, done.stderr[-500:])
    assert len(done.stdout) < 2 * MIB and len(done.stderr) < 1000
    return done


def is_plain(text):
    return not [c for c in text if (ord(c) < 32 and c not in "\n\t") or 0x7f <= ord(c) < 0xa0]


@pytest.mark.parametrize("command", COMMANDS)
def test_answers(recording, tmp_path, command):
    command = command.replace("OUT", str(tmp_path / "out"))
    text = ask(recording, command).stdout
    if not command.startswith("flame"):  # folded stacks are for other programs, as they are but for what parts them
        assert is_plain(text.decode("utf-8")), command
    if command.startswith("recover"):
        (tmp_path / "out.gmt").unlink(missing_ok=True)
    said = ask(recording, command, "--json").stdout.decode("utf-8")
    assert is_plain(said)
    for line in said.splitlines():
        json.loads(line)
    # A converted snapshot is written again as it was, with its names; all else cuts them.
    room = 22 * MIB if "--to torch" in command else 4 * MIB
    for file in tmp_path.iterdir():
        assert file.stat().st_size < room


def test_compared_with_itself(recording):
    for more in ([], ["--json"], ["--markdown"]):
        done = subprocess.run([Tool.path, "diff", recording, recording, *more], capture_output=True, timeout=600)
        assert done.returncode == 0 and len(done.stdout) < MIB
        assert is_plain(done.stdout.decode("utf-8"))
