# SPDX-License-Identifier: Apache-2.0
"""top follows a running process: what it says is what PyTorch counts in that process at that moment."""
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

MIB = 1 << 20


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


class Screen:
    """top on a terminal of 24 by 80."""

    def __init__(self, tool, *args):
        parent, child = pty.openpty()
        termios.tcsetwinsize(child, (40, 80)) if hasattr(termios, "tcsetwinsize") else None
        self.before = termios.tcgetattr(child)
        self.process = subprocess.Popen([tool.path, "top", *map(str, args)], stdin=child, stdout=child, stderr=child,
                                        env=dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR=""))
        self.parent, self.child, self.text = parent, child, ""

    def read(self, seconds):
        if not select.select([self.parent], [], [], seconds)[0]:
            return False
        self.text += os.read(self.parent, 65536).decode("utf-8", "replace")
        return True

    def wait_for(self, pattern, seconds=30):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            assert time.monotonic() < end, (pattern, self.text[-3000:])
            self.read(1)

    def key(self, key):
        os.write(self.parent, key)

    def ended(self):
        while self.process.poll() is None:
            self.read(0.2)
        while self.read(0.2):
            pass
        return self.process.returncode


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
    held.end()
    assert tool.json("top", held.file)["ended"] is True


def test_it_follows(held, tool):
    screen = Screen(tool, held.pid)
    screen.wait_for(mib(held.allocated) + " of .* now")
    for size in (50 * MIB, 100 * MIB):
        held.take(size)
        screen.wait_for(mib(held.allocated) + " of .* now")
    screen.wait_for("held.py:")
    held.end()
    screen.wait_for("has ended")
    screen.key(b"q")
    assert screen.ended() == 0
    assert screen.text.startswith("\x1b[?1049h") and screen.text.rstrip().endswith("\x1b[?25h\x1b[?1049l")
    assert termios.tcgetattr(screen.child) == screen.before


def test_a_signal_gives_the_terminal_back(held, tool):
    screen = Screen(tool, held.file, "--every", 3600)
    screen.wait_for("q quits")
    screen.process.terminate()
    assert screen.ended() == 0
    assert termios.tcgetattr(screen.child) == screen.before and "\x1b[?1049l" in screen.text


def test_what_cannot_be_followed(tool, tmp_path):
    for args, code, says in ([str(os.getpid())], 2, "writes no recording"), (["999999999"], 2, "no process"), (
            [str(tmp_path / "x.gmt")], 3, "No such file"), (["x", "--every", "0"], 2, "--every"):
        done = subprocess.run([tool.path, "top", *args], capture_output=True, text=True, timeout=60)
        assert done.returncode == code and says in done.stderr and done.stderr.count("\n") == 1


