# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""Tensors that are saved for backward: computed again, kept on the host, or not saved."""
import atexit
import time
import weakref

import torch
from torch.utils.checkpoint import checkpoint

from .changes_places import around_calls, is_called_at


def names_of(module):
    """Names of the module's class, and of the class whose forward it runs."""
    of = type(module).forward.__qualname__.split(".")
    return {type(module).__name__, of[-2] if len(of) > 1 else ""}


def without_cache(args, kwargs):
    """A cache of keys and values would be filled twice."""
    return [None if type(a).__name__.endswith("Cache") else a for a in args], \
        {k: None if type(v).__name__.endswith("Cache") else False if k == "use_cache" else v for k, v in kwargs.items()}


def checkpoint_class(change, noted, say):
    """Every module of the class, or every k-th, in forward passes with a graph."""
    inside, seen, numbers = [], set(), weakref.WeakKeyDictionary()
    name, every = change.value

    def around(module, call, args, kwargs):
        if inside or not torch.is_grad_enabled():
            return call(*args, **kwargs)
        names = names_of(module)
        if name not in names:
            if not names <= seen:
                seen.update(names)
                say(f"the classes that were called: {', '.join(sorted(seen - {''})[:12])}")
            return call(*args, **kwargs)
        if numbers.setdefault(module, len(numbers)) % every:
            return call(*args, **kwargs)
        args, kwargs = without_cache(args, kwargs)

        def run(*args, **kwargs):
            inside.append(1)
            try:
                return call(*args, **kwargs)
            finally:
                inside.pop()

        noted()
        return checkpoint(run, *args, use_reentrant=False, **kwargs)

    around_calls(around)


def save_on_cpu(change, noted, say):
    """The host's copies are made as the context manager makes them."""
    hooks, kept = torch.autograd.graph.save_on_cpu(), weakref.WeakSet()

    class Kept:
        def __init__(self, packed):
            self.packed = packed
            kept.add(self)

    def pack(tensor):
        noted()
        return Kept(hooks.pack_hook(tensor))

    def wait():
        """Autograd's threads may still free the last graph, whose hooks need the interpreter: without it they end the program."""
        end = time.monotonic() + 0.2
        while kept and time.monotonic() < end:
            time.sleep(0.002)

    torch.autograd.graph.saved_tensors_hooks(pack, lambda x: hooks.unpack_hook(x.packed)).__enter__()
    atexit.register(wait)


def no_grad(change, noted, say):
    """Around the modules that a line calls, or around all that are frozen."""
    def is_meant(module):
        return is_called_at(change.value) if change.value else torch.is_grad_enabled() and is_frozen(module)

    def around(module, call, args, kwargs):
        if not is_meant(module):
            return call(*args, **kwargs)
        noted()
        with torch.no_grad():
            return call(*args, **kwargs)

    around_calls(around, outermost=bool(change.value))


def is_frozen(module):
    weights = [*module.parameters()]
    return weights and not any(p.requires_grad for p in weights)
