# SPDX-License-Identifier: Apache-2.0
"""A command on a terminal of its own."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time


class Terminal:
    """The command's stdin, stdout and stderr are a terminal, which is its controlling one as well.

    Our side keeps the command's end open too: when the last holder of that end closes it while the other
    side is about to read, Linux may tell the reader of the hang-up before it has handed out what was written."""

    def __init__(self, command, lines=24, columns=80, **env):
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.before = termios.tcgetattr(self.theirs)
        env = {**{k: v for k, v in os.environ.items() if k not in ("PAGER", "LESS")}, "TERM": "xterm", "LC_ALL": "C.UTF-8", **env}
        self.process = subprocess.Popen([str(word) for word in command], stdin=self.theirs, stdout=self.theirs, stderr=self.theirs,
                                        env=env, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.written = b""

    @property
    def text(self):
        return self.written.replace(b"\r\n", b"\n").decode("utf-8", "replace")

    def read(self, seconds):
        """Takes what is written within these seconds; False: nothing was."""
        if not select.select([self.ours], [], [], seconds)[0]:
            return False
        self.written += os.read(self.ours, 65536)
        return True

    def wait_for(self, seen, seconds=60):
        """Reads until seen(text) is true."""
        end = time.monotonic() + seconds
        while not seen(self.text):
            assert time.monotonic() < end, self.text[-3000:]
            self.read(0.2)

    def key(self, key):
        os.write(self.ours, key)

    def settings_are_back(self):
        return termios.tcgetattr(self.theirs) == self.before

    def ended(self, seconds=120):
        """The exit code, once the command has ended and all that it wrote is read."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, self.text[-3000:]
            self.read(0.2)
        while self.read(0):
            pass
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)
