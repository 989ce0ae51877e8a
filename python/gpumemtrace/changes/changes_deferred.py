# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""Results that are not computed where the program asks for them: the scores of an attention, until their product with the values shows
that one fused call will do, and logits, until a loss takes them in pieces. Any other use of them computes them first."""
import torch


class Deferred:
    """operations: a list of (function, arguments behind the first) to be done with it."""

    def __init__(self, begin, like, operations=()):
        self.begin, self.like, self.operations = begin, like, list(operations)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        one = next((a for a in [*args, *(kwargs or {}).values()] if isinstance(a, Deferred)), None)
        return one.take(func, args, kwargs or {}) if one is not None else func(*plain(args), **plain(kwargs or {}))

    def take(self, func, args, kwargs):
        found = self.follow(func.__name__, args, kwargs) if args and args[0] is self else None
        return found if found is not None else func(*plain(args), **plain(kwargs))

    def compute(self):
        with torch._C.DisableTorchFunction():
            out = self.begin()
            for func, args, kwargs in self.operations:
                out = func(out, *args, **kwargs)
        return out

    def __getattr__(self, name):
        attribute = getattr(torch.Tensor, name)
        if name in ("device", "is_cuda", "requires_grad"):
            return getattr(self.given, name)
        if not callable(attribute):
            return getattr(self.like, name) if name in ("shape", "dtype", "ndim") else getattr(self.compute(), name)
        if name in ("size", "dim", "numel"):
            return getattr(self.like, name)
        return lambda *args, **kwargs: self.take(attribute, (self, *args), kwargs)


def operator(name):
    return lambda self, *args: self.take(getattr(torch.Tensor, name), (self, *args), {})


for _name in ("__truediv__", "__mul__", "__rmul__", "__add__", "__radd__", "__matmul__", "__getitem__", "__sub__", "__neg__"):
    setattr(Deferred, _name, operator(_name))


def plain(value):
    if isinstance(value, Deferred):
        return value.compute()
    if isinstance(value, (tuple, list)):
        return type(value)(map(plain, value))
    return {k: plain(v) for k, v in value.items()} if isinstance(value, dict) else value
