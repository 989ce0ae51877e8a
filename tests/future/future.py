# SPDX-License-Identifier: Apache-2.0
"""The rest of a run, from the events of its whole recording: what became of each block after a given event. Nothing of what the
tool concludes is asked."""
import bisect
import collections
import json
import subprocess

SETUP, FORWARD, BACKWARD, BETWEEN, OPTIMIZER, REST, CAUGHT = PHASES = (
    "set-up and first forward", "forward and loss", "backward", "after backward", "optimizer", "passes without backward", "after a caught failure")

OF_FRAMEWORK = 2  # among the flags of an event


class Block:
    __slots__ = ("seq", "addr", "size", "end", "stack", "node", "saves", "releases", "grads", "trained", "walks", "is_packed", "used")

    def __init__(self, e):
        self.seq, self.addr, self.size, self.stack, self.node, self.end = e["seq"], e["addr"], e["size"], e["stack"], e["scope"], float("inf")
        self.trained = []  # events: a gradient arrived for a weight in it
        self.walks = []  # ends of backward passes that kept its graph
        self.saves, self.releases, self.grads = [], [], []  # events; releases: (event, whether the backward pass did it)
        self.used = 0  # event of its last use by a kernel, a copy or a collective
        self.is_packed = False  # by a hook, as checkpointing does: no release is recorded

    def is_alive(self, seq):
        return self.seq < seq < self.end

    def is_used_by_backward(self, seq):
        """A graph that has it now, or takes it later, is gone through later."""
        return any(after > seq and by_engine for after, by_engine in self.releases) or any(after > seq for after in self.walks)

    def is_held_by_graph(self, seq):
        """Saved more often than released."""
        return bisect.bisect(self.saves, seq) > sum(at <= seq for at, _ in self.releases)


class Run:
    """Device 0 of a recording."""

    def __init__(self, tool, path):
        self.blocks, self.optimizers, self.backwards, self.zeroed, self.ooms = [], [], [], [], []
        self.reserved = []  # (event, bytes more) of the allocator's segments
        self.engine, self.saves = set(), []
        self.read(tool, path)
        self.closures = [c for span in self.optimizers for c in self.passes_inside(*span)]
        self.step_ends = [self.end_of_step(*span) for span in self.optimizers]
        self.starts = [b.seq for b in self.blocks]
        self.note_walks()
        steps = json.loads(subprocess.run([tool, "steps", str(path), "--json"], capture_output=True, text=True).stdout)
        self.is_one_a_step = steps["basis"] == "optimizer" and steps["steps"] == len(self.optimizers)  # each ends with one optimizer's

    def read(self, tool, path):
        for line in dump(tool, path, "--defs"):
            if line["def"] == "thread" and line.get("name", "").startswith("pt_autograd"):
                self.engine.add(line["id"])
        live, addresses, savers = {}, [], collections.defaultdict(list)
        opened, leaves = {}, {}
        for e in dump(tool, path):
            kind = e["kind"]
            if kind == "block_alloc" and e["device"] == 0:
                block = live[e["addr"]] = Block(e)
                bisect.insort(addresses, e["addr"])
                self.blocks.append(block)
            elif kind == "block_free" and e["device"] == 0 and e["addr"] in live:
                live.pop(e["addr"]).end = e["seq"]
                addresses.pop(bisect.bisect_left(addresses, e["addr"]))
            elif kind in ("use", "transfer"):
                for place in e.get("places", [e["addr"]]):
                    at = bisect.bisect(addresses, place) - 1
                    block = live.get(addresses[at]) if at >= 0 else None
                    if block and place < block.addr + block.size:
                        block.used = e["seq"]
            elif kind in ("mem_alloc", "mem_free") and e["device"] == 0 and e.get("flags", 0) & OF_FRAMEWORK:
                self.reserved.append((e["seq"], e["size"] if kind == "mem_alloc" else -e["size"]))
            elif kind in ("tag_saved", "tag_grad", "tag_leaf", "tag_moved"):
                at = bisect.bisect(addresses, e["addr"]) - 1
                block = live.get(addresses[at]) if at >= 0 else None
                if block is None or e["addr"] >= block.addr + block.size:
                    block = None
                if kind == "tag_saved":
                    savers[e["arg0"]].append(block)
                    self.saves.append(e["seq"])
                    if block:
                        block.saves.append(e["seq"])
                        block.is_packed |= not e["arg0"]
                elif kind != "tag_grad":
                    leaves[e["arg0"]] = block
                elif block:
                    block.grads.append(e["seq"])
                if kind == "tag_grad" and leaves.get(e["arg0"]):
                    leaves[e["arg0"]].trained.append(e["seq"])
            elif kind == "tag_released" and savers[e["arg0"]]:
                block = savers[e["arg0"]].pop()
                if block:
                    block.releases.append((e["seq"], e["thread"] in self.engine or self.in_node(e)))
            elif kind == "range_begin":
                opened[e["arg0"]] = e
            elif kind == "range_end" and e["arg0"] in opened:
                self.end_range(opened.pop(e["arg0"]), e)
            elif kind == "block_oom":
                self.ooms.append(e["seq"])
            self.note_backward(e)

    def note_backward(self, e):
        """An event of a backward node: stretches of them with nothing else of the main thread between are one pass."""
        if e["thread"] in self.engine or e.get("scope"):
            if self.backwards and not self.outside:
                self.backwards[-1][1] = e["seq"]
            else:
                self.backwards.append([e["seq"], e["seq"]])
            self.outside = False
        elif e["kind"] == "block_alloc" or (e["kind"] == "range_begin" and e.get("name", "").startswith("Optimizer.")):
            self.outside = True

    outside = True

    def in_node(self, e):
        return bool(self.backwards) and not self.outside and e["thread"] not in self.engine

    def end_range(self, begin, end):
        name = begin.get("name", "")
        if name.startswith("Optimizer.step"):
            self.optimizers.append((begin["seq"], end["seq"]))
        elif name.startswith("Optimizer.zero_grad"):
            self.zeroed.append((begin["seq"], end["seq"]))

    def note_walks(self):
        """A backward pass in which nothing is let go keeps its graph (retain_graph=True): what the step's passes saved."""
        let_go = sorted(at for b in self.blocks for at, by_engine in b.releases if by_engine)
        for first, last in self.backwards:
            if bisect.bisect_left(let_go, first) == bisect.bisect_right(let_go, last):
                begin = self.step_begins(first)
                for b in self.alive(first):
                    if b.is_held_by_graph(first) and b.saves[-1] > begin:
                        b.walks.append(last)

    def passes_inside(self, begin, end):
        """A closure's forward and backward passes in an optimizer's step. The first begins with the step; those after it with what they
        clear or save: what is made before is the optimizer's own."""
        for first, last in self.backwards:
            if begin < first and last < end:
                yield begin, last
                begins = [at for at in [*(z for z, _ in self.zeroed), *self.saves] if last < at < end]
                begin = min(begins, default=end)

    def end_of_step(self, begin, end):
        """Optimizers that hooks of one backward pass call, each for a parameter, end one step together."""
        return next((last for first, last in self.backwards if first <= begin and end <= last), end)

    def alive(self, seq):
        return [b for b in self.blocks[:bisect.bisect_left(self.starts, seq)] if b.end > seq]

    def block(self, seq):
        return self.blocks[bisect.bisect_left(self.starts, seq)]

    def in_backward(self, seq):
        return any(a <= seq <= b for a, b in self.backwards)

    def in_optimizer(self, seq):
        """The step at work, but for the passes of its closure."""
        if any(a <= seq <= b for a, b in self.closures):
            return None
        return next(((a, b) for a, b in self.optimizers if a <= seq <= b), None)

    def tensors_of_state(self):
        """That an optimizer keeps of a weight, as the first one did in its first step; at most two."""
        begin, end = next(iter(self.optimizers), (0, 0))
        weights = sum(b.size for b in self.blocks if any(s < begin for s in b.trained))
        state = sum(b.size for b in self.blocks if begin <= b.seq <= end < b.end)
        return min(2, round(state / weights)) if weights else 0

    def next_backward(self, seq):
        return next((a for a, b in self.backwards if b >= seq), float("inf"))

    def step_begins(self, seq):
        """When the latest optimizer's step was over."""
        return max((end for end in self.step_ends if end < seq), default=0)

    def low(self, seq):
        return sum(b.size for b in self.alive(seq))

    def later_steps(self, seq):
        return [b for _, b in self.optimizers if b >= seq]

    def phase(self, seq):
        if any(o < seq for o in self.ooms):
            return CAUGHT
        if self.in_optimizer(seq):
            return OPTIMIZER
        if self.in_backward(seq):
            return BACKWARD
        back = self.next_backward(seq)
        step = next((a for a, _ in self.optimizers if a >= seq), float("inf"))
        if not any(b < seq for _, b in self.backwards):
            return SETUP
        if back < step:
            return FORWARD
        return BETWEEN if step < float("inf") else REST


def dump(tool, path, *options):
    with subprocess.Popen([tool, "dump", str(path), "--json", *options], stdout=subprocess.PIPE, text=True) as p:
        for line in p.stdout:
            yield json.loads(line)
