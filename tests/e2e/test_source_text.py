# SPDX-License-Identifier: Apache-2.0
"""The text of the program's statements is in the recording: as Python itself reads it, whatever becomes of the files."""
import json
import os
import time

HELPER = """\
import ctypes
def take(size):
    p = ctypes.c_void_p()
    assert ctypes.CDLL(None).cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size)) == 0
    return p
def later(size):
    return take(size)  # by another thread
"""
PROGRAM = """\
import os, sys, threading
from helper import later, take
a = take(4096)
b = [take(size)
     for size in (8192,
                  12288)]
threads = [threading.Thread(target=later, args=(16384,)) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
with open("fresh.py", "w") as f:
    f.write("from helper import take\\nc = take(20480)\\n")
import fresh
if len(sys.argv) > 1:
    os.kill(os.getpid(), 9)
"""


def frames(tool, recording):
    found = {}
    for line in tool("stack", recording, "--all", "--json").splitlines():
        for frame in json.loads(line)["frames"]:
            if frame["kind"] == "python":
                found[os.path.basename(frame["file"]), frame["line"]] = frame.get("text")
    return found


def sources(tool, recording):
    return [d for d in map(json.loads, tool("dump", "--defs", "--json", recording).splitlines()) if d["def"] == "source"]


def write(folder):
    (folder / "helper.py").write_text(HELPER)
    (folder / "program").write_text(PROGRAM)


def answers(tool, recording):
    return [tool(*command, recording) for command in (("report",), ("stack", "--all"), ("dump",), ("dump", "--defs"))]


def test_statements_are_those_of_the_start(tool, programs, tmp_path):
    write(tmp_path)
    recording = programs.traced("program", PYTHONPATH=tmp_path, PYTHONDONTWRITEBYTECODE=1)
    said = frames(tool, recording)
    assert said["helper.py", 4] == HELPER.splitlines()[3].strip()
    assert said["helper.py", 7] == "return take(size)"
    assert said["program", 3] == "a = take(4096)"
    assert said["program", 4] == "b = [take(size) for size in (8192, 12288)]"
    assert said["fresh.py", 2] is None  # written by the program: not what was there at its start
    assert [d["file"].endswith("fresh.py") for d in sources(tool, recording) if d["changed"]] == [True]
    # another version in the same folder, then none: not one byte of any answer differs
    before = answers(tool, recording)
    (tmp_path / "helper.py").write_text("# another version\n" * 10)
    (tmp_path / "program").write_text("import nothing\n" * 20)
    assert answers(tool, recording) == before
    (tmp_path / "helper.py").unlink()
    (tmp_path / "program").unlink()
    assert answers(tool, recording) == before


def test_changed_before_it_was_read(tool, programs, tmp_path):
    """A file that is newer than the process is not the code that runs."""
    write(tmp_path)
    future = time.time() + 1000
    os.utime(tmp_path / "helper.py", (future, future))
    said = frames(tool, programs.traced("program", PYTHONPATH=tmp_path, PYTHONDONTWRITEBYTECODE=1))
    assert said["helper.py", 4] is None and said["program", 3] == "a = take(4096)"


def test_killed_and_switched_off(tool, programs, tmp_path):
    write(tmp_path)
    programs("program", "kill", PYTHONPATH=tmp_path, GPUMEMTRACE_OUTPUT="killed.gmt")
    assert ("program", 3) in frames(tool, tmp_path / "killed.gmt")
    off = programs.traced("program", PYTHONPATH=tmp_path, GPUMEMTRACE_SOURCE="off", output="off.gmt")
    assert set(frames(tool, off).values()) == {None}
    assert not sources(tool, off)


def test_why_names_the_line(tool, programs, tmp_path):
    write(tmp_path)
    recording = programs.traced("program", PYTHONPATH=tmp_path)
    block = next(b for b in tool.json("live", recording, "--at", "end")["blocks"] if b["size"] == 8192)
    why = tool.json("why", recording, hex(block["addr"]), "--at", "end")
    assert (why["function"], why["line"], why["text"]) == ("take", 4, HELPER.splitlines()[3].strip())
    said = tool("why", recording, hex(block["addr"]), "--at", "end").splitlines()
    assert said[-1] == "allocated by take (%s:4): %s" % (tmp_path / "helper.py", why["text"])
