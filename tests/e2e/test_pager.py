# SPDX-License-Identifier: Apache-2.0
"""Text that is longer than the terminal's screen goes through a pager, nothing else does, and exit codes stay."""
import fcntl
import os
import pty
import shutil
import struct
import subprocess
import termios
import time

import pytest

from conftest import ROOT

MIB = 1 << 20


class Terminal:
    """A command on a terminal of its own, 24 lines by 80."""

    def __init__(self, tool, *args, **env):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.execve(tool.path, [tool.path, *map(str, args)], {**{k: v for k, v in os.environ.items() if k not in ("PAGER", "LESS")}, "TERM": "xterm", "NO_COLOR": "1", **env})
        self.text = b""

    def read(self, until=None, seconds=20):
        end = time.time() + seconds
        while time.time() < end and not (until and until in self.text):
            try:
                piece = os.read(self.fd, 65536)
            except OSError:
                return self
            if not piece:
                return self
            self.text += piece
        return self

    def ended(self):
        self.read()
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status), self.text.replace(b"\r\n", b"\n").decode()


def keep(path):
    """A pager that only says that it was one."""
    return f"(echo paged; cat) > {path}"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Sixty stacks, so that a report with all lines is longer than the screen; and its double."""
    folder = tmp_path_factory.mktemp("pager")
    subprocess.run(["make", "-s", "build/data/make_recording"], cwd=ROOT, check=True)
    for name, size in (("old", MIB), ("new", 2 * MIB)):
        lines = ["thread 1 1 main"]
        for i in range(1, 61):
            lines += [f"string {i} f{i}", f"code {i} 779 {i} model.py f{i} 80 00", f"node {i} 0 2 {i << 32 | 1}",
                      f"event block_alloc time_ns={i} addr={0x10000000 + i * 4 * MIB} size={size} arg0={i * size} arg1={64 * size} stack={i} thread=1"]
        subprocess.run([ROOT / "build/data/make_recording", folder / f"{name}.gmt"], input="\n".join(lines).encode(), check=True)
    return folder / "old.gmt"


def test_long_text_is_paged(tool, run, tmp_path):
    out = tmp_path / "paged"
    assert Terminal(tool, "report", run, "--top", 0, PAGER=keep(out)).ended() == (0, "")
    assert out.read_text() == "paged\n" + tool("report", run, "--top", 0)


def test_what_is_not_paged(tool, run, tmp_path):
    out = tmp_path / "paged"
    whole = tool("report", run, "--top", 0)
    assert len(whole.splitlines()) > 24
    for env, more in (({"PAGER": keep(out)}, ["--no-pager"]), ({"PAGER": "cat"}, []), ({"PAGER": ""}, []), ({"PAGER": keep(out), "TERM": "dumb"}, [])):
        assert Terminal(tool, "report", run, "--top", 0, *more, **env).ended() == (0, whole)
    assert Terminal(tool, "verify", run, PAGER=keep(out)).ended() == (0, tool("verify", run))
    assert Terminal(tool, "dump", run, "--json", PAGER=keep(out)).ended() == (0, tool("dump", run, "--json"))
    piped = subprocess.run([tool.path, "report", run, "--top", "0"], capture_output=True, text=True, env={**os.environ, "PAGER": keep(out)})
    assert piped.stdout == whole
    assert not out.exists()


def test_exit_code_and_sentence_after_the_text(tool, run, tmp_path):
    """A check that fails: its sentence comes when the reader has left the pager."""
    pages = Terminal(tool, "dump", run, PAGER=keep(tmp_path / "a")).ended()
    assert pages == (0, "")
    new = run.with_name("new.gmt")
    code, text = Terminal(tool, "diff", run, new, "--fail-above", "1%", PAGER=f"sleep 0.3; (echo paged; cat) | tee {tmp_path / 'b'}").ended()
    assert code == 1
    said = (tmp_path / "b").read_text() if (tmp_path / "b").exists() else ""
    assert said.startswith("paged\n") and text.startswith(said)
    assert text[len(said):].startswith("gpumemtrace diff: ") and text.count("gpumemtrace diff: ") == 1


def test_a_reader_who_leaves_early(tool, run, tmp_path):
    code, text = Terminal(tool, "dump", run, PAGER="head -1").ended()
    assert code in (0, -13) and len(text.splitlines()) == 1


@pytest.mark.skipif(not shutil.which("less"), reason="no less")
def test_less(tool, run):
    t = Terminal(tool, "report", run, "--top", 0)
    t.read(until=b":", seconds=10)
    assert b"Device 0: peak" in t.text and b"60 MiB" in t.text.replace(b"60.0", b"60")
    assert b"allocated at the end" not in t.text
    os.write(t.fd, b"q")
    assert t.ended()[0] == 0
