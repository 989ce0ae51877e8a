# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""Batches in parts: loaders give an Nth of the rows, the loss of each part counts an Nth, and the optimizer makes its step at every Nth call.
`batch=1/N@ROWS`: also tensors that the program makes itself on the device or moves there, if they have so many rows. Steps before the first
divided batch, such as a pre-training on other batches, are whole."""
import functools
import weakref

import torch
from torch import nn
from torch.utils.data import BatchSampler

from .changes_places import InPlaceOf, around_calls, frames, trained, with_each_optimizer

MADE = {"randn", "rand", "randint", "zeros", "ones", "full"}


def batch_in_parts(change, noted, say):
    parts, rows = change.value
    divided = []  # empty until a batch was divided

    def note():
        divided[:] = [True]
        noted()

    smaller_loads(parts, note, say)
    if rows:
        smaller_tensors(parts, rows, note)
    else:
        say_rows(parts, say)
    part_of_loss(parts, divided)
    fewer_steps(parts, divided)


def smaller_loads(parts, noted, say):
    plain = BatchSampler.__init__

    @functools.wraps(plain)
    def begin(self, sampler, batch_size, drop_last):
        if batch_size >= parts:
            noted()
        elif batch_size > 1:
            say(f"the batches of one have {batch_size} rows")
        plain(self, sampler, max(batch_size // parts, 1), drop_last)

    BatchSampler.__init__ = begin


def say_rows(parts, say):
    """Says how many rows the model was called with, for batches that no loader made."""
    seen = set()

    def around(module, call, args, kwargs):
        given = next((len(t) for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor) and t.ndim), 0)
        if torch.is_grad_enabled() and given not in seen:
            seen.add(given)
            say(f"the model was called with {', '.join(map(str, sorted(seen)))} rows", f"batch=1/{parts}@{max(seen)}" if max(seen) > 1 else "")
        return call(*args, **kwargs)

    around_calls(around, outermost=True)


def smaller_tensors(parts, rows, noted):
    """Weights that a model makes or moves are none of these, nor what is made in its forward pass."""
    depth = []

    def part(value, sizes):
        if isinstance(value, (tuple, list)) and value and value[0] == rows:
            return (rows // parts, *value[1:])
        return rows // parts if sizes and type(value) is int and value == rows else value

    def smaller(func, args, kwargs):
        if depth or any(is_of_module(f) for f in frames()):
            return None
        made = func.__name__ in MADE
        out = func(*args, **kwargs)
        if not isinstance(out, torch.Tensor) or not out.ndim or len(out) != rows or (made and str(kwargs.get("device", "cpu")) == "cpu"):
            return out
        if not made:
            if not isinstance(args[0], torch.Tensor) or args[0].device == out.device:
                return out
            noted()
            return func(args[0][:rows // parts], *args[1:], **kwargs)
        noted()
        first = func.__name__ in ("randn", "rand", "zeros", "ones")
        return func(*(part(a, first and not i) for i, a in enumerate(args)), **{k: part(v, False) for k, v in kwargs.items()})

    def around(module, call, args, kwargs):
        depth.append(1)
        try:
            return call(*args, **kwargs)
        finally:
            depth.pop()

    around_calls(around, outermost=True)
    InPlaceOf(MADE | {"cuda", "to"}, smaller)


def is_of_module(frame):
    """A module's weights are made, or moved."""
    return frame.f_code.co_name in ("__init__", "_apply") and isinstance(frame.f_locals.get("self"), nn.Module)


def part_of_loss(parts, divided):
    plain = torch.autograd.backward

    @functools.wraps(plain)
    def backward(tensors, grad_tensors=None, *args, **kwargs):
        if not divided:
            return plain(tensors, grad_tensors, *args, **kwargs)
        tensors = (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors)
        given = grad_tensors if isinstance(grad_tensors, (tuple, list)) else (grad_tensors,) * len(tensors)
        scaled = tuple(torch.full_like(t, 1 / parts) if g is None and t.numel() == 1 else g / parts if g is not None else None
                       for t, g in zip(tensors, given))
        return plain(tensors, scaled, *args, **kwargs)

    torch.autograd.backward = backward


def fewer_steps(parts, divided):
    """The gradients of an optimizer are freed only behind a step that it made. Methods of classes are wrapped, as schedulers of the learning rate wrap those of
    an optimizer."""
    calls = weakref.WeakKeyDictionary()

    def counted(plain):
        @functools.wraps(plain)
        def step(self, *args, **kwargs):
            calls[self] = calls.get(self, 0) + bool(divided)
            if calls[self] % parts == 0:
                return plain(self, *args, **kwargs)
            closure = args[0] if args else kwargs.get("closure")
            with torch.enable_grad():
                return closure() if closure else None
        step.in_parts = True
        return step

    def waits(of):
        """An optimizer that has not made its step, or one of a module's weights."""
        if not isinstance(of, nn.Module):
            return calls.get(of, 0) % parts
        weights = set(of.parameters())
        return any(n % parts and not weights.isdisjoint(trained(opt)) for opt, n in calls.items())

    def kept(plain):
        @functools.wraps(plain)
        def zero_grad(self, *args, **kwargs):
            if not waits(self):
                plain(self, *args, **kwargs)
        zero_grad.in_parts = True
        return zero_grad

    def wrap(opt):
        for name, wrapped in (("step", counted), ("zero_grad", kept)):
            if not hasattr(getattr(type(opt), name), "in_parts"):
                setattr(type(opt), name, wrapped(getattr(type(opt), name)))

    with_each_optimizer(wrap)
    nn.Module.zero_grad = kept(nn.Module.zero_grad)
