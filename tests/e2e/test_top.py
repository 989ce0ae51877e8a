# SPDX-License-Identifier: Apache-2.0
"""top follows a running process: what it says is what PyTorch counts in that process at that moment."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

MIB = 1 << 20

pytestmark = pytest.mark.plain  # a program that starts at once has nothing yet to look at


class Held:
    """The workload held.py, running."""

    def __init__(self, programs):
        self.process = subprocess.Popen(
            [sys.executable, programs.workload("held.py")], env=programs.environment(GPUMEMTRACE_OUTPUT="held.gmt"),
            cwd=programs.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid, self.file = self.process.pid, programs.folder / "held.gmt"
        self.allocated = int(self.process.stdout.readline())

    def take(self, size):
        print(size, file=self.process.stdin, flush=True)
        self.allocated = int(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0


@pytest.fixture
def held(programs):
    h = Held(programs)
    yield h
    if h.process.poll() is None:
        h.process.kill()
        h.process.wait()


def seen(pattern):
    return lambda text: re.search(pattern, text)


def mib(n):
    return re.escape("%.1f MiB" % (n / MIB))


def test_a_look_is_what_pytorch_counts(held, tool, programs):
    for what in (held.pid, held.file):
        for size in (0, 3 * MIB, 700000):
            held.take(size)
            said = tool.json("top", what)
            assert (said["bytes"], said["pid"], said["ended"]) == (held.allocated, held.pid, False)
            assert sum(said["categories"].values()) == sum(x["bytes"] for x in said["lines"]) == held.allocated
            live = tool.json("live", held.file, "--at", "end")
            assert live["bytes"] == held.allocated
    assert said["step"] == 6 and said["categories"]["optimizer_state"] == said["categories"]["parameters"]
    source = Path(programs.workload("held.py")).read_text().splitlines()
    line = next(x for x in said["lines"] if "torch.empty(int(line)" in source[x["line"] - 1])
    assert line["blocks"] == 4 and line["bytes"] == 2 * (3 * MIB + (700000 + 511) // 512 * 512)
    text = tool("top", held.pid)
    assert text.startswith(f"Process {held.pid}") and "\x1b" not in text and max(map(len, text.splitlines())) <= 80
    assert "still running" in tool("verify", held.file) and "still running" in tool("report", held.file)
    held.end()
    assert tool.json("top", held.file)["ended"] is True and "running" not in tool("verify", held.file) + tool("report", held.file)


def test_it_follows(held, tool, terminal):
    screen = terminal(tool.path, "top", held.pid, lines=40, NO_COLOR="")
    screen.wait_for(seen(mib(held.allocated) + " of .* now"))
    for size in (50 * MIB, 100 * MIB):
        held.take(size)
        screen.wait_for(seen(mib(held.allocated) + " of .* now"))
    screen.wait_for(seen("held.py:"))
    held.end()
    screen.wait_for(seen("has ended"))
    screen.key(b"q")
    assert screen.ended() == 0
    assert screen.text.startswith("\x1b[?1049h") and screen.text.rstrip().endswith("\x1b[?25h\x1b[?1049l")
    assert screen.settings_are_back()


def test_keys_and_steps(held, tool, terminal):
    """What each step left and the range of peaks as `steps` has them; s, a, j and k change the lines."""
    for size in (MIB, 2 * MIB, 3 * MIB):
        held.take(size)
    held.end()
    rows = [r for r in tool.json("steps", held.file)["rows"] if r["phase"] == "step"]
    said = re.search(r"Peaks since step 1 \S* ?([\d.]+ \w+) to ([\d.]+ \w+), step (\d+) left ([+-][\d.]+ \w+)", tool("top", held.file))
    assert re.fullmatch(mib(min(r["peak_bytes"] for r in rows)), said[1]) and re.fullmatch(mib(max(r["peak_bytes"] for r in rows)), said[2])
    assert int(said[3]) == max(r["step"] for r in rows)
    live = tool.json("live", held.file, "--at", "end")["blocks"]
    screen = terminal(tool.path, "top", held.file, "--top", 2, lines=40, NO_COLOR="")
    screen.wait_for(seen("q quits, s sorts by blocks, a shows all lines, j and k move"))
    assert "has ended" in screen.text and len(held_lines(screen.text)) == 2
    screen.key(b"a")
    screen.wait_for(seen("a shows fewer lines"))
    every = held_lines(screen.text)
    assert sum(n for _, n in every) == len(live) and len(every) > 2
    screen.key(b"s")
    screen.wait_for(seen("s sorts by bytes"))
    counts = [n for _, n in held_lines(screen.text)]
    assert counts == sorted(counts, reverse=True) and sorted(counts) == sorted(n for _, n in every)
    screen.key(b"q")
    assert screen.ended() == 0


def held_lines(text):
    """Class and blocks of the lines of the last frame."""
    frame = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.split("\x1b[H")[-1])
    return [(row[0].strip(), int(row[1])) for row in re.findall(r"^  (\S.{19})  .* (\d+) *\r?$", frame.split("allocated at")[1], re.M)]


def test_a_signal_gives_the_terminal_back(held, tool, terminal):
    screen = terminal(tool.path, "top", held.file, "--every", 3600, lines=40, NO_COLOR="")
    screen.wait_for(seen("q quits"))
    screen.process.terminate()
    assert screen.ended() == 0
    assert screen.settings_are_back() and "\x1b[?1049l" in screen.text


def test_what_cannot_be_followed(tool, tmp_path):
    for args, code, says in ([str(os.getpid())], 2, "writes no recording"), (["999999999"], 2, "no process"), (
            [str(tmp_path / "x.gmt")], 3, "No such file"), (["x", "--every", "0"], 2, "--every"):
        done = subprocess.run([tool.path, "top", *args], capture_output=True, text=True, timeout=600)
        assert done.returncode == code and says in done.stderr and done.stderr.count("\n") == 1


