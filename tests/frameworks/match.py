# SPDX-License-Identifier: Apache-2.0
"""Two runs of one program: the truth of the first, said of the blocks of the second. A block is known by the number
of its allocation among those of its size: threads that load weights take turns as they like. As many blocks of each size must
have been handed out up to a mark, or the runs part there."""
import collections
import json
import subprocess

from score import TOOL

PASSES = ("tag_saved", "tag_leaf", "tag_grad", "mem_alloc", "mem_free", "meminfo")  # may stand between a block's event and its mark


def story(recording, device):
    """Events of a run on a device, in order."""
    done = subprocess.run([TOOL, "dump", str(recording), "--json"], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"dump {recording}: {done.stderr}")
    events = []
    for line in done.stdout.splitlines():
        if '"kind":"' in line:
            e = json.loads(line)
            if e.get("device", device) == device:
                events.append((e["kind"], e["time_ns"], e.get("addr"), e.get("size")))
    return events


class Walk:
    """A run, walked once from mark to mark."""

    def __init__(self, events):
        self.events = events
        self.i = self.allocs = self.frees = 0
        self.live = {}  # address: size, and number among the blocks of that size
        self.births = collections.Counter()
        self.keys = []  # of each allocation

    def take(self):
        kind, _, addr, size = self.events[self.i]
        self.i += 1
        if kind == "block_alloc":
            self.live[addr] = (size, self.births[size])
            self.keys.append(self.live[addr])
            self.births[size] += 1
            self.allocs += 1
        elif kind == "block_free":
            self.live.pop(addr, None)
            self.frees += 1

    def until(self, allocs, frees):
        """To the moment after so many allocations and releases, and to what was noted of them. Its time."""
        while self.i < len(self.events) and self.allocs < allocs:
            self.take()
        while self.i < len(self.events):
            kind = self.events[self.i][0]
            if kind == "block_alloc" or self.frees >= frees and kind not in PASSES:
                break
            self.take()
        return self.events[self.i - 1][1]


def carry_over(lines, first, second):
    """The truth's lines with the second run's addresses and moments; where both runs part, if they do; bytes that
    lived at a mark in one run only."""
    out, differs, walks = [], 0, {}
    for line in lines:
        device = line["device"]
        if device not in walks:
            walks[device] = Walk(story(first, device)), Walk(story(second, device))
        one, two = walks[device]
        one.until(line["allocs"], line["frees"])
        at = two.until(line["allocs"], line["frees"])
        if one.births != two.births and any("inside_backward" in earlier["mark"] for earlier in out):
            return out, None, differs  # the hook that set this mark keeps autograd from adding in place: later blocks are others
        if one.births != two.births:
            return out, next((i for i, (a, b) in enumerate(zip(one.keys, two.keys)) if a[0] != b[0]), line["allocs"]), differs
        where = {key: addr for addr, key in two.live.items()}
        keys = {one.keys[b["life"]]: b for b in line["blocks"]}
        assert all(key[0] == b["size"] for key, b in keys.items()), "the truth's own recording has other blocks"
        blocks = [{**b, "addr": where[key]} for key, b in keys.items() if key in where]
        differs += sum(size for size, _ in keys.keys() ^ where.keys())
        out.append({**line, "blocks": blocks, "at": str(at), "not_there": {where[key] for key in where.keys() - keys.keys()}})
    return out, None, differs
