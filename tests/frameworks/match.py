# SPDX-License-Identifier: Apache-2.0
"""Two runs of one program: the truth of the first, said of the blocks of the second. A block is known by where it was
made (its lines of Python) and by its number among those of that place: which cached block the allocator hands out, and so the
size, depends on when the device was done with others. Where as many of each size came from a place, it is the
number among those of that size: threads that load weights take turns as they like. As many blocks of each place must
have been handed out up to a mark, or the runs part there."""
import collections
import json
import subprocess
import sys
import tempfile

from score import BUILD, TOOL

PASSES = ("tag_saved", "tag_leaf", "tag_grad", "mem_alloc", "mem_free", "meminfo")  # may stand between a block's event and its mark
# Frames that are there, or on another line, because of the truth's hooks.
HOOKED = ("tests/frameworks/prologue.py", "tests/classes/truth.py", "<frozen runpy>", "/runpy.py", "torch/nn/modules/module.py",
          "torch/autograd/graph.py")
PYTHON, BOTH = 2, 3  # kinds of a stack's nodes: a frame of Python, a native stack on top of one of Python


def lines_of(what, recording, *options):
    done = subprocess.run([TOOL, "dump", str(recording), "--json", *options], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"dump {recording}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines() if what in line]


def stable(file):
    """Code that was written as the program ran has another name in each run; an environment may lie elsewhere."""
    kept = file.startswith((f"{BUILD.parent}/", f"{sys.prefix}/"))  # a clone may lie there too
    return "" if file.startswith(tempfile.gettempdir() + "/") and not kept else "/".join(file.split("/")[-4:])


class Places:
    """Stack ids of a recording: their lines of Python as one number that is the same in another run."""

    def __init__(self, recording):
        defs = lines_of('"def":"', recording, "--defs")
        self.codes = {d["id"]: (stable(d["file"]), d["name"]) for d in defs if d["def"] == "code"}
        self.nodes = {d["id"]: d for d in defs if d["def"] == "stack"}
        self.known = {0: 0}

    def of(self, stack):
        node = self.nodes.get(stack)
        if node and node["frame"] == BOTH:
            stack = node["value"]
        chain = []
        while stack not in self.known and (node := self.nodes.get(stack)) and node["frame"] == PYTHON:
            chain.append((stack, node["value"]))
            stack = node["parent"]
        place = self.known.get(stack, 0)
        for stack, value in reversed(chain):
            code = self.codes.get(value >> 32, ("", ""))
            if not any(part in code[0] for part in HOOKED):
                place = hash((place, *code, value & 0xffffffff))
            self.known[stack] = place
        return place


def story(recording, device):
    """Events of a run on a device, in order."""
    places = Places(recording)
    return [(e["kind"], e["time_ns"], e.get("addr"), e.get("size"), places.of(e.get("stack", 0)))
            for e in lines_of('"kind":"', recording) if e.get("device", device) == device]


class Walk:
    """A run, walked once from mark to mark."""

    def __init__(self, events):
        self.events = events
        self.i = self.allocs = self.frees = 0
        self.live = {}  # address: place, size, number among the blocks of that place, and among those of that size too
        self.births = collections.Counter()
        self.sizes = collections.defaultdict(collections.Counter)
        self.keys = []  # of each allocation

    def take(self):
        kind, _, addr, size, place = self.events[self.i]
        self.i += 1
        if kind == "block_alloc":
            self.live[addr] = (place, size, self.births[place], self.sizes[place][size])
            self.keys.append(self.live[addr])
            self.births[place] += 1
            self.sizes[place][size] += 1
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

    def name_of(self, key, other):
        """What the same block is called in both runs."""
        place, size, number, of_size = key
        return (place, size, of_size) if self.sizes[place] == other.sizes[place] else (place, number)


def parting(one, two, otherwise):
    """The first allocation that another place made in the other run."""
    return next((i for i, (a, b) in enumerate(zip(one.keys, two.keys)) if a[0] != b[0]), otherwise)


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
            return out, parting(one, two, line["allocs"]), differs
        where = {two.name_of(key, one): (addr, key[1]) for addr, key in two.live.items()}
        said = {}
        for b in line["blocks"]:
            assert one.keys[b["life"]][1] == b["size"], "the truth's own recording has other blocks"
            said[one.name_of(one.keys[b["life"]], two)] = b
        blocks = [{**b, "addr": where[name][0], "size": where[name][1]} for name, b in said.items() if name in where]
        differs += sum(b["size"] for name, b in said.items() if name not in where)
        differs += sum(size for name, (_, size) in where.items() if name not in said)
        out.append({**line, "blocks": blocks, "at": str(at), "not_there": {where[name][0] for name in where.keys() - said.keys()}})
    return out, None, differs
