# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""Which changes took effect in a process of the program, and how often: three numbers a change in a small mapped file, which outlives
any end of the process. `run` reads the files of all processes when the program has ended."""
import mmap
import os
import struct
from typing import List, Tuple

NUMBERS = struct.Struct("QQQ")  # all of them, those since the last step, the most of one step


class Effects:
    """Each process has a file of its own, also one that was forked."""

    def __init__(self, folder, count):
        self.folder, self.count, self.pid, self.steps = folder, count, 0, 0
        self.open()

    def open(self):
        if self.pid == os.getpid():
            return
        self.pid = os.getpid()
        self.rows = [[0, 0, 0] for _ in range(self.count)]
        try:
            with open(self.path("effect"), "wb+") as f:
                f.truncate(NUMBERS.size * self.count or 1)
                self.map = mmap.mmap(f.fileno(), 0)
        except OSError:  # the folder is gone
            self.map = mmap.mmap(-1, NUMBERS.size * self.count or 1)

    def path(self, kind):
        return os.path.join(self.folder, f"{kind}.{self.pid}")

    def write(self, i):
        NUMBERS.pack_into(self.map, i * NUMBERS.size, *self.rows[i])

    def noted(self, i):
        """The function with which a change says that it took effect."""
        def note(times=1):
            self.open()
            row = self.rows[i]
            row[0] += times
            row[1] += times
            self.write(i)
        return note

    def step(self):
        self.open()
        for i, row in enumerate(self.rows):
            row[1], row[2] = 0, max(row[1:])
            self.write(i)

    def say(self, i, words, instead=""):
        """Writes why the change could not be made, or which classes, rows or lines the program has instead; instead: the change to give."""
        try:
            with open(self.path(f"why.{i}"), "w", encoding="utf-8") as f:
                f.write(f"{instead}\n{words}")
        except OSError:
            pass


def read_effects(folder: str, count: int) -> Tuple[int, List[Tuple[int, int, str, str]]]:
    """(processes, [(all of them, the most of one step, words, change to give instead)]) of all processes."""
    rows, processes = [[0, 0, "", ""] for _ in range(count)], 0
    for name in sorted(os.listdir(folder)):
        kind, *rest = name.split(".")
        if kind not in ("effect", "why"):
            continue
        with open(os.path.join(folder, name), "rb") as f:
            found = f.read()
        if kind == "why":
            rows[int(rest[0])][3], _, rows[int(rest[0])][2] = found.decode("utf-8", "replace").partition("\n")
            continue
        processes += 1
        for row, (times, now, most) in zip(rows, NUMBERS.iter_unpack(found[:NUMBERS.size * count])):
            row[0], row[1] = row[0] + times, max(row[1], most)
    return processes, [tuple(row) for row in rows]
