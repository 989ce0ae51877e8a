# SPDX-License-Identifier: Apache-2.0
"""The claims of `oom` that the rest of a run decides. A claim is (kind, True or False, what was said beside what is so); True where
no more bytes were named than the rest of the run shows to be so."""
import bisect
import collections
import re

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
PASSING = {"activations", "inputs", "forward_temporaries", "backward_temporaries", "kv_cache"}
ROUNDED = 1.06  # of a figure in a sentence
NEAR = 1.02


def amounts(text):
    return [float(n) * UNITS[u] for n, u in re.findall(r"(\d[\d.,]*) (B|KiB|MiB|GiB)\b", text.replace(",", ""))]


class Moment:
    """What is so at a staged refusal."""

    def __init__(self, run, seq):
        self.run, self.seq = run, seq
        self.blocks = run.alive(seq)
        self.wanted = run.block(seq)
        self.begin = run.step_begins(seq)
        self.number = sum(b < seq for _, b in run.optimizers) + 1

    def bytes(self, of):
        return sum(b.size for b in self.blocks if of(b))

    def by_optimizer(self, b):
        return self.run.in_optimizer(b.seq)

    def is_older(self, b):
        """Of an earlier step: no state of the optimizer, and no gradients that were kept."""
        return b.seq < self.begin and not self.by_optimizer(b) and not b.grads

    def is_for_good(self, b):
        """There before the first graph, and past the last step: no batch."""
        ends = self.run.step_ends
        return len(ends) > 1 and bool(self.run.saves) and b.seq < self.run.saves[0] and b.end > ends[-1]

    def is_needed(self, b):
        return b.is_used_by_backward(self.seq) or any(s > self.seq for s in b.saves)

    def is_used_up(self, b):
        """Used before, and not in the rest of the run."""
        return 0 < b.used < self.seq

    def has_begun(self):
        """A pass of this step: a graph holds what was made since the one before."""
        return any(b.seq > self.begin and b.is_held_by_graph(self.seq) for b in self.blocks)

    def can_go(self, b):
        """No graph needs it, and the program holds it to the end of this pass, or held it from an earlier step into this pass."""
        spans = [*self.run.optimizers, *self.run.backwards]
        now = self.run.in_optimizer(self.seq) or next((x for x in self.run.backwards if x[0] <= self.seq <= x[1]), None)
        ends = now[1] if now else min((begin for begin, _ in spans if begin > self.seq), default=float("inf"))
        return not self.is_needed(b) and (b.end > ends or ends == float("inf") or (self.is_older(b) and self.has_begun()))

    def is_for_nothing(self, b):
        """What a hook packed is held by no graph, and backward may take it again."""
        return not b.is_packed and b.is_held_by_graph(self.seq) and not b.is_used_by_backward(self.seq)

    def adds_up(self):
        """Gradients of this step get more of them before the optimizer."""
        end = next((b for _, b in self.run.optimizers if b > self.seq), float("inf"))
        return lambda b: any(self.begin < g < self.seq for g in b.grads) and any(self.seq < g < end for g in b.grads)

    def still_grows(self):
        """The lows of steps go up: in the rest, or, where none is left, until here. None: too few steps to say."""
        ends = [b for _, b in self.run.optimizers]
        before, after = [e for e in ends if e < self.seq], [e for e in ends if e > self.seq]
        if len(after) >= 2 and before:
            return self.run.low(after[min(2, len(after) - 1)]) > self.run.low(before[-1])
        if len(before) >= 3:
            return self.run.low(before[-1]) > self.run.low(before[-3])
        return None


def at_most(said, so, room=NEAR):
    return said <= so * room + 4096


def step(m, doc):
    """The refusal belongs to the step of the optimizer's step that comes next."""
    if not any(end < m.seq for _, end in m.run.optimizers) or not m.run.is_one_a_step:
        return None  # without an optimizer's step the answer counts passes
    right = {m.number}
    if m.number == 1 or not m.has_begun():
        right.add(m.number - 1)  # set-up, or passes between two steps
    return doc["step"] in right, f"step {doc['step']}, is {m.number}"


def older(m, doc):
    said = sum(h["earlier_bytes"] for h in doc["holders"] if h["class"] in PASSING)
    if said < doc["allocated_bytes"] / 100 or not m.run.optimizers or "earlier forward passes" in doc["text"]:
        return None
    # What a pass between two steps made is older than the batch of the next.
    so = m.bytes(lambda b: not m.by_optimizer(b) and (b.seq < m.begin or not (m.is_needed(b) or b.is_held_by_graph(m.seq))))
    return at_most(said, so), f"{said >> 20} MiB older, are {so >> 20}"


def kept(m, doc):
    """Causes retained_graph and growing."""
    if doc["cause"] not in ("retained_graph", "growing"):
        return None
    said = amounts(doc["text"])[0]
    if "earlier forward passes" in doc["text"]:
        so = m.bytes(lambda b: b.seq >= m.begin and not m.is_needed(b))
        return at_most(said, so, ROUNDED), f"{said / 2**20:.0f} MiB of earlier passes, {so >> 20} that no backward pass takes"
    if not m.run.optimizers:
        return (False, "kept from step to step; one backward pass takes it") if m.bytes(m.is_needed) > said / 2 else None
    so = m.bytes(m.is_older)
    grows = m.still_grows()
    return (at_most(said, so, ROUNDED) and grows is not False), f"{said / 2**20:.0f} MiB of earlier steps, are {so >> 20}; grows: {grows}"


def first_step(m, doc):
    if "its first step makes it" not in doc["text"]:
        return None
    span = m.run.in_optimizer(m.seq)
    if not span:
        return False, "no step of an optimizer"
    so = sum(b.size for b in m.run.blocks if m.seq <= b.seq <= span[1] < b.end)
    return so > 0, f"{so >> 20} MiB of state come"


def lasts(m):
    """What is of the model: it outlives the step, an optimizer makes it, or it was made before the first pass, or of the step at work."""
    span = m.run.in_optimizer(m.seq) or (0, 0)
    end = next((end for end in m.run.step_ends if end > m.seq), 0)
    first = min(m.run.saves, default=0)
    is_setup = not any(m.begin < save < m.seq for save in m.run.saves)
    return lambda b: (b.grads or b.trained or m.by_optimizer(b) or span[0] < b.seq < span[1] or b.end > end or b.seq < first
                      or (is_setup and b.seq > m.begin))


def cause(m, doc):
    """What the model takes, or what the batches do."""
    if not m.run.optimizers or doc["cause"] not in ("model_too_large", "batch_too_large"):
        return None
    said = amounts(doc["text"].split(" that PyTorch could use")[0].split(" in total")[0])
    if doc["cause"] == "model_too_large":
        so = m.bytes(lasts(m))
        model = said[-2] if " that PyTorch could use" in doc["text"] else 0
        return at_most(model, so, ROUNDED), f"{model / 2**20:.0f} MiB of the model, {so >> 20} so"
    soon = m.run.step_ends[:4][-1]  # the first batches were made before a graph saved anything
    so = max(made_in_step(m, doc), m.wanted.size + m.bytes(lambda b: (b.seq > min(m.run.saves) or b.end < soon) and not b.grads and not m.by_optimizer(b)))
    return at_most(said[-1], so, ROUNDED), f"{said[-1] / 2**20:.0f} MiB of batches, {so >> 20} so"


def sharded(m, r, doc):
    if not m.run.optimizers:
        return None
    so = m.bytes(lasts(m)) + m.wanted.size
    return at_most(r["saves_bytes"], so), so


def state(m, r, doc):
    """Also that of an optimizer of the program's own."""
    is_lasting = lasts(m)
    so = m.bytes(lambda b: is_lasting(b) and not b.trained and not b.grads) + m.wanted.size
    end = next((end for end in m.run.step_ends if end >= m.seq), 0)
    so += sum(b.size for b in m.run.blocks if m.seq <= b.seq <= end < b.end and m.by_optimizer(b))
    return at_most(r["saves_bytes"], so), so


def let_go(m, r, doc):
    if r["what"].startswith("If no backward pass follows"):
        return None  # says what to do either way
    passes = not m.run.optimizers or any(words in r["what"] for words in ("earlier passes", "cache of keys and values"))
    so = m.bytes(lambda b: not m.is_needed(b) and not b.grads if passes else m.is_older(b) and not m.is_needed(b))
    return at_most(r["saves_bytes"], so), so


def overlap(m, r, doc):
    so = m.bytes(m.is_used_up)
    return at_most(r["saves_bytes"], so), so


def late_del(m, r, doc):
    so = m.bytes(m.can_go)
    return at_most(r["saves_bytes"], so), so


def no_grad(m, r, doc):
    if ", if no backward pass follows" in r["what"]:
        return None  # the first pass at its place
    so = m.bytes(m.is_for_nothing) + (m.wanted.size if not m.is_needed(m.wanted) else 0)
    return at_most(r["saves_bytes"], so), so


def saved(m, r, doc):
    so = m.bytes(lambda b: b.saves) + m.wanted.size
    return at_most(r["saves_bytes"], so), so


def made_in_step(m, doc):
    # Behind an optimizer's step it may be of that step: no batch has come since.
    begin = m.run.step_begins(m.begin) if m.run.is_one_a_step and m.number > 1 and not m.has_begun() else m.begin
    return m.bytes(lambda b: b.seq >= begin and not m.by_optimizer(b) and not m.is_for_good(b)) + (0 if m.wanted.grads else m.wanted.size)


def smaller_batch(m, r, doc):
    so = made_in_step(m, doc) // 2
    return at_most(r["saves_bytes"], so), so


def in_pieces(m, r, doc):
    """What backward needs stays, in however many pieces it was computed."""
    least, largest = amounts(r["how_known"])[:2] if " to " in r["how_known"] else amounts(r["how_known"])[:1] * 2
    so = sum(b.size for b in [*m.blocks, m.wanted] if b.size >= least / ROUNDED and b.size <= largest * ROUNDED and not b.saves)
    return at_most(r["saves_bytes"], so, ROUNDED), so


def foreach_off(m, r, doc):
    span = m.run.in_optimizer(m.seq)
    if not span:
        return None
    so = sum(b.size for b in [*m.blocks, m.wanted] if span[0] <= b.seq and b.end <= span[1])
    return at_most(r["saves_bytes"], so), so


def state_elsewhere(m, r, doc):
    span = m.run.in_optimizer(m.seq) or (0, 0)
    so = m.bytes(lambda b: b.end > span[1] and not b.grads)
    so += sum(b.size for b in m.run.blocks if m.seq <= b.seq <= span[1] < b.end)
    return at_most(r["saves_bytes"], so), so


def set_to_none(m, r, doc):
    if not m.run.optimizers:
        return None
    so = m.bytes(lambda b: b.grads) - m.bytes(m.adds_up())
    return at_most(r["saves_bytes"], so), so


def idle_weights(m, r, doc):
    so = m.bytes(lambda b: not any(s > m.seq for s in b.saves) and not any(g > m.seq for g in b.grads))
    return at_most(r["saves_bytes"], so), so


def unused(m, r, doc):
    """Weights and state that nothing uses in the rest of the run."""
    so = m.bytes(m.is_used_up)
    return at_most(r["saves_bytes"], so), so


def one_by_one(m, r, doc):
    """Made between two passes, and gone before the next."""
    last = max((end for _, end in m.run.backwards if end <= m.seq), default=0)
    then = min((begin for begin, _ in m.run.backwards if begin > m.seq), default=float("inf"))
    so = m.bytes(lambda b: b.seq > last and b.end < then and not m.is_needed(b)) + m.wanted.size
    return at_most(r["saves_bytes"], so), so


def refused_attempts(m, r, doc):
    so = m.bytes(lambda b: not m.is_needed(b))
    return at_most(r["saves_bytes"], so), so


def kept_results(m, r, doc):
    """Leaves that a graph keeps with their gradients, too: no other gradient comes for them."""
    so = m.bytes(lambda b: not m.is_needed(b) and not any(g > m.seq for g in b.grads))
    return at_most(r["saves_bytes"], so), so


def held_unused(m, r, doc):
    """No work uses it in the rest of the run."""
    so = m.bytes(lambda b: b.used < m.seq)
    return at_most(r["saves_bytes"], so), so


def backward_each(m, r, doc):
    """Graphs that one backward pass goes through, the next one that comes or that is at work."""
    if r["what"].startswith("If no backward pass follows"):
        return None
    so = m.bytes(lambda b: b.is_used_by_backward(m.seq))
    return at_most(r["saves_bytes"], so), so


def results_on_host(m, r, doc):
    """With the request, if it is for results of several passes in one tensor."""
    so = m.bytes(lambda b: not b.saves and not b.grads and not b.trained) + (m.wanted.size if not m.is_needed(m.wanted) else 0)
    return at_most(r["saves_bytes"], so), so


def loaded(m, r, doc):
    so = m.bytes(lambda b: not any(s > m.seq for s in [*b.trained, *b.saves, *b.grads]) and not m.by_optimizer(b))
    return at_most(r["saves_bytes"], so), so


def in_rows(m, r, doc):
    """No graph takes them, nor what is made of them."""
    so = m.bytes(lambda b: not b.saves and not b.grads and not b.trained) + m.wanted.size
    return at_most(r["saves_bytes"], so), so


def nobody_else(m, r, doc):
    return False, 0


REMEDIES = {"free_device": nobody_else, "let_go": let_go, "overlap": overlap, "late_del": late_del, "no_grad": no_grad, "checkpoint": saved, "offload_activations": saved, "frozen_graph": saved,
            "smaller_batch": smaller_batch, "shard": sharded, "shard_state": state, "state_in_8_bits": state, "in_pieces": in_pieces, "in_rows": in_rows, "mask_copies": saved, "foreach_off": foreach_off, "state_elsewhere": state_elsewhere,
            "set_to_none": set_to_none, "idle_weights": idle_weights, "unused": unused, "held_unused": held_unused, "converted": held_unused, "one_by_one": one_by_one, "refused_attempts": refused_attempts, "kept_results": kept_results, "held": unused, "kept": unused, "backward_each": backward_each, "results_on_host": results_on_host, "loaded": loaded}
SENTENCES = {"step": step, "older": older, "kept": kept, "cause": cause, "first_step": first_step}


def outlives_its_step(m):
    """Of several steps: what one alone left may be a new model, or state."""
    by_step = collections.Counter()
    for b in m.blocks if m.still_grows() else []:
        if m.is_older(b) and b.seq > m.run.step_ends[0] and not m.is_needed(b) and not b.trained:
            by_step[bisect.bisect(m.run.step_ends, b.seq)] += b.size
    return sum(by_step.values()) - max(by_step.values(), default=0)


def made_and_freed(m):
    span = m.run.in_optimizer(m.seq)
    return m.bytes(lambda b: span[0] <= b.seq and b.end <= span[1]) if span else 0


# Where a tenth of the memory is so, one of these answers is expected.
EXPECTED = {
    "growing": (outlives_its_step, {"retained_graph", "growing", "let_go", "overlap", "late_del", "refused_attempts", "kept_results", "results_on_host"}),
    "no_grad": (lambda m: m.bytes(m.is_for_nothing), {"no_grad", "let_go", "frozen_graph", "retained_graph", "growing", "kept_results"}),
    "checkpoint": (lambda m: m.bytes(lambda b: b.is_held_by_graph(m.seq) and b.is_used_by_backward(m.seq)),
                   {"checkpoint", "offload_activations", "smaller_batch", "backward_each", "fused_attention", "loss_in_pieces"}),
    "foreach_off": (made_and_freed, {"foreach_off", "fused_optimizer", "one_by_one", "in_pieces", "state_elsewhere", "shard_state"}),
}


def missed(run, seq, doc):
    """Kinds of which a tenth of the memory and more is, and no expected answer to it; the bytes."""
    m = Moment(run, seq)
    names = {doc["cause"], *(r["name"] for r in doc["remedies"])}
    if any(end < m.seq for _, end in run.optimizers) and run.is_one_a_step and m.has_begun() and doc["step"] is None:
        yield "step", 0
    for kind, (so, answers) in EXPECTED.items():
        if not names & answers and (n := so(m)) > doc["allocated_bytes"] / 10:
            yield kind, n


def claims(run, seq, doc):
    """All that was said of a staged refusal: kind, whether it is so (None: the rest does not decide), words."""
    m = Moment(run, seq)
    for kind, test in SENTENCES.items():
        found = test(m, doc)
        if found:
            yield (doc["cause"] if test in (kept, cause) else kind), *found
    if not kept(m, doc) and not cause(m, doc):
        yield doc["cause"], None, ""
    for r in doc["remedies"]:
        found = REMEDIES[r["name"]](m, r, doc) if r["name"] in REMEDIES else None
        yield r["name"], found[0] if found else None, f"{r['saves_bytes'] >> 20} MiB said, {found[1] >> 20} so: {r['what'][:90]}" if found else ""
