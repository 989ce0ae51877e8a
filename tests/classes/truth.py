# SPDX-License-Identifier: Apache-2.0
"""What every block of device memory is for, as the program itself knows it. Nothing here asks the tool.

A script declares who holds tensors (`holds`, `model`, `optimizer`), says in which phase it is (`phase`) and
calls `mark`: a user range of the name "truth_NAME", in which no device memory is taken, and one line of JSON
for it. Saved tensors are read from the graph's nodes as they lie there: no hook changes what is saved, nothing
is unpacked or recomputed. Which life of an address a block is, and the phase it was born in, come from
PyTorch's own allocation history, with the phase as its metadata. The lines are written by `finish`."""
import collections
import contextlib
import gc
import json
import os
import time

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

ORDER = ("parameters", "gradients", "optimizer_state", "buffers", "inputs", "activations", "kv_cache", "communication")
LATER = ("parameters", "gradients", "optimizer_state", "activations")
BORN = {"forward": ["forward_temporaries"], "backward": ["backward_temporaries"], "step": ["optimizer_temporaries"],
        "communication": ["communication"], "capture": ["forward_temporaries", "activations", "backward_temporaries"]}
TEMPORARIES = {"forward_temporaries", "backward_temporaries", "optimizer_temporaries"}
WORKSPACES = {33554432, 8519680}  # what PyTorch takes for cuBLAS, by compute capability
LT_WORKSPACE = 1 << 20  # and for cuBLASLt: a size that others have too, so one that stays and that nobody ever holds

holders = []  # class, what to say of it, function that gives the tensors now, other classes that are right as well
sizes = []  # the same for memory that no tensor in Python holds: function that gives its sizes, asked at the end
lines = []
times = {}
phases = ["setup"]


def start():
    torch.cuda.memory._record_memory_history(enabled="all", context=None, stacks="python")
    torch.cuda.memory._set_memory_metadata(phases[-1])


@contextlib.contextmanager
def phase(name):
    phases.append(name)
    torch.cuda.memory._set_memory_metadata(name)
    try:
        yield
    finally:
        phases.pop()
        torch.cuda.memory._set_memory_metadata(phases[-1])


def holds(cls, why, tensors, or_else=()):
    """`or_else`: names that a reader would accept as well, because nothing but intent tells them apart."""
    assert cls in ORDER
    holders.append((cls, why, tensors, tuple(or_else)))


def holds_sizes(cls, why, bytes_of_each):
    sizes.append((cls, why, bytes_of_each))


def model(module, cls="parameters"):
    holds(cls, "parameter", lambda: list(module.parameters()))
    holds("buffers", "buffer", lambda: list(module.buffers()))
    holds("gradients", "p.grad", lambda: [p.grad for p in module.parameters()])


def optimizer(opt):
    holds("optimizer_state", "optimizer.state", lambda: list(opt.state.values()))
    holds("gradients", "p.grad", lambda: [p.grad for g in opt.param_groups for p in g["params"]])


def tensors_in(thing, depth=4):
    """Every tensor in nested containers and plain objects; of a wrapper the tensors it is made of."""
    if isinstance(thing, torch.Tensor):
        if is_traceable_wrapper_subclass(thing):
            yield from tensors_in([getattr(thing, name) for name in thing.__tensor_flatten__()[0]], depth)
        elif thing.layout == torch.sparse_coo:
            yield from (thing._indices(), thing._values())
        else:
            yield thing
    elif isinstance(thing, dict):
        for value in thing.values():
            yield from tensors_in(value, depth)
    elif isinstance(thing, (list, tuple, set)):
        for value in thing:
            yield from tensors_in(value, depth)
    elif depth and hasattr(thing, "__dict__") and not callable(thing):
        yield from tensors_in(vars(thing), depth - 1)


def storage_of(t):
    """Address of the tensor's memory on a device, or nothing."""
    try:
        if t.is_cuda and t.layout == torch.strided and t.untyped_storage().nbytes():
            return t.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        pass
    return 0


def saved_of(node):
    """Tensors that a node of the graph still saves. One that hooks packed is looked for in what they made of it."""
    for name in dir(node):
        if not name.startswith("_raw_saved_"):
            continue
        try:
            value = getattr(node, name)
            for saved in value if isinstance(value, (tuple, list)) else (value,):
                yield from tensors_in(saved.data)
        except RuntimeError:  # released
            continue


def saved_tensors():
    """Saved in any graph that a tensor known to Python leads to, and recomputed ones that wait for their node.
    Then what Functions in Python keep in their context without saving it."""
    waiting, seen = [], set()
    saved, kept = [], []
    for thing in gc.get_objects():
        if issubclass(type(thing), torch.Tensor):
            with contextlib.suppress(RuntimeError):  # a view whose base was changed in place
                waiting.append(thing.grad_fn)
        elif type(thing).__name__ == "_CheckpointFrame":
            for waits in thing.recomputed.values():
                saved.extend(tensors_in(list(waits.values())))
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            saved.extend(saved_of(node))
            kept.extend(tensors_in(getattr(node, "__dict__", {}), 0))
            waiting.extend(following for following, _ in node.next_functions)
    return saved, kept


def lives(snapshot, device):
    """For each address its last birth: its number among the allocations, and the phase it happened in. The
    metadata belongs to a thread, and a thread without is autograd's."""
    births = (e for e in snapshot["device_traces"][device] if e["action"] == "alloc")
    return {e["addr"]: (i, e.get("user_metadata") or "backward") for i, e in enumerate(births)}


def counts(snapshot, device):
    """How many blocks were handed out and taken back so far."""
    actions = [e["action"] for e in snapshot["device_traces"][device]]
    return actions.count("alloc"), actions.count("free_completed")


def meanings():
    """Address of a storage: the classes it has now, with the reason."""
    found = {}
    everyone = [(cls, why, tensors(), or_else) for cls, why, tensors, or_else in holders]
    saved, kept = saved_tensors()
    everyone.append(("activations", "saved for backward", saved, ()))
    everyone.append(("activations", "kept in the context of a Function", kept, ("forward_temporaries",)))
    for cls, why, things, or_else in everyone:
        for t in tensors_in(things):
            at = storage_of(t)
            if at:
                found.setdefault(at, {}).setdefault(cls, (why, or_else))
    return found


def known_to_python():
    """Storages of every tensor that Python has a reference to, whoever that may be."""
    found = (storage_of(t) for t in gc.get_objects() if issubclass(type(t), torch.Tensor))
    return sorted(at for at in found if at)


def decide(held, asked, born, known):
    """The classes that are right for a block, and the reason; none if nobody can tell."""
    for cls in ORDER:
        if cls in held:
            why, or_else = held[cls]
            also = [other for other, (_, names) in held.items() if cls in names and other not in or_else]
            return [cls, *or_else, *also], why
    if asked in WORKSPACES and not known:
        return ["workspace"], "size of a workspace, held by no tensor"
    if born in BORN:
        return list(BORN[born]), "nobody holds it, born in " + born
    return [], "nobody holds it, born in " + born


def settle():
    """Autograd's thread may give up memory after the results of a pass have been handed over: until it is done."""
    before = -1
    while before != (now := torch.cuda.memory_allocated()):
        before = now
        time.sleep(0.05)


@torch.no_grad()
def mark(name):
    name = "truth_" + name
    torch.cuda.synchronize()
    settle()
    with torch.profiler.record_function(name):
        device = torch.cuda.current_device()
        snapshot = torch.cuda.memory._snapshot()
        allocated = torch.cuda.memory_allocated()
        found = sorted(meanings().items())
        known = known_to_python()
        assert torch.cuda.memory_allocated() == allocated
    times[name] = times.get(name, 0) + 1
    born = lives(snapshot, device)
    blocks = []
    for segment in snapshot["segments"]:
        for b in segment["blocks"] if segment["device"] == device else ():
            if b["state"] != "active_allocated":
                continue
            at, size = b["address"], b["size"]
            life, since = born.get(at, (-1, "before"))
            held = {cls: why for s, what in found if at <= s < at + size for cls, why in what.items()}
            classes, why = decide(held, b["requested_size"], since, any(at <= s < at + size for s in known))
            blocks.append({"addr": at, "size": size, "asked": b["requested_size"], "classes": classes, "why": why,
                           "born": since, "life": life, "held": bool(held)})
    allocs, frees = counts(snapshot, device)
    lines.append({"mark": name, "k": times[name], "device": device, "allocated": allocated, "allocs": allocs,
                  "frees": frees, "blocks": blocks})


def learn_late():
    """A temporary that is a gradient, a state or saved later in the same life may be called so before; and one
    that was a gradient may be called so as long as the framework's own means (a bucket, a graph's pool) keep it.
    What was the batch and is held by nobody that we know is the batch of before."""
    later, grads, batches = {}, set(), set()
    for line in reversed(lines):
        for b in line["blocks"]:
            life, cls = (b["addr"], b["life"]), (b["classes"] or [""])[0]
            if cls in TEMPORARIES or cls == "communication":
                b["classes"] += sorted(later.get(life, ()))
            elif cls in LATER:
                b["classes"] += {"gradients"} & later.get(life, set()) if cls == "activations" else ()
                later.setdefault(life, set()).add(cls)
    for line in lines:
        for b in line["blocks"]:
            life, cls = (b["addr"], b["life"]), (b["classes"] or [""])[0]
            if cls == "gradients":
                grads.add(life)
            elif cls in ("backward_temporaries", "communication") and life in grads:
                b["classes"].append("gradients")
            elif cls == "inputs":
                batches.add(life)
            elif not cls and life in batches:
                b["classes"], b["why"] = ["inputs"], "the batch of before"


def learn_sizes():
    """What such a memory is for lasts: a result of a forward pass may be as large, but is gone by the next mark."""
    seen = collections.Counter((b["addr"], b["life"]) for line in lines for b in line["blocks"])
    for cls, why, bytes_of_each in sizes:
        known = set(bytes_of_each())
        for b in (b for line in lines for b in line["blocks"]):
            if not b["held"] and b["asked"] in known and (b["born"] != "forward" or seen[b["addr"], b["life"]] > 1):
                b["classes"], b["why"] = [cls], why


def learn_workspaces():
    """A temporary does not live at half of all marks; the end of a program may give workspaces back."""
    held = {(b["addr"], b["life"]) for line in lines for b in line["blocks"] if b["held"]}
    seen = collections.Counter((b["addr"], b["life"]) for line in lines for b in line["blocks"] if b["asked"] == LT_WORKSPACE)
    stays = {life for life, times in seen.items() if 2 * times >= len(lines)} - held
    for b in (b for line in lines for b in line["blocks"]):
        if (b["addr"], b["life"]) in stays:
            b["classes"], b["why"] = ["workspace"], "size of a workspace, held by no tensor at any mark"


def finish():
    learn_sizes()
    learn_workspaces()
    learn_late()
    with open(os.environ["TRUTH"].replace("%r", os.environ.get("RANK", "0")), "w") as f:
        for line in lines:
            f.write(json.dumps(line) + "\n")
