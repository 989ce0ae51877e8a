# SPDX-License-Identifier: Apache-2.0
"""Results that are not computed where the program asks for them: the scores of an attention, until their product with the values shows that one
fused call does, and logits, until a loss takes them in pieces. Whatever else is asked of them computes them first."""
import math

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

PRODUCTS = {"matmul", "bmm", "__matmul__"}
PIECES = 8


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


# ---- attention ----

class Scores(Deferred):
    given = property(lambda self: self.query)
    scale, mask, dropout, softmax_done = 1.0, None, 0.0, False
    query = key = noted = None

    def changed(self, func, args, kwargs, **fields):
        out = Scores(self.begin, self.like, [*self.operations, (func, args, kwargs)])
        kept = ("scale", "mask", "dropout", "softmax_done", "query", "key", "noted")
        out.__dict__.update({**{k: self.__dict__[k] for k in kept if k in self.__dict__}, **fields})
        return out

    def follow(self, name, args, kwargs):
        rest = args[1:]
        number = rest[0] if rest and isinstance(rest[0], (int, float)) else None
        if name in ("div", "__truediv__", "true_divide") and number:
            return self.changed(torch.div, rest, kwargs, scale=self.scale / number)
        if name in ("mul", "__mul__", "__rmul__", "multiply") and number:
            return self.changed(torch.mul, rest, kwargs, scale=self.scale * number)
        if name in ("add", "__add__", "__radd__") and isinstance(rest[0], torch.Tensor) and not self.softmax_done:
            return self.changed(torch.add, rest, kwargs, mask=rest[0] if self.mask is None else self.mask + rest[0])
        if name in ("masked_fill", "masked_fill_") and rest[1] == -math.inf and self.mask is None:
            return self.changed(torch.masked_fill, rest, kwargs, mask=~rest[0].bool())
        if name == "softmax" and not self.softmax_done:
            return self.changed(torch.softmax, rest, {k: v for k, v in kwargs.items() if k in ("dim", "dtype")}, softmax_done=True)
        if name in ("to", "type", "float", "type_as", "contiguous"):
            return self
        if name == "dropout" and self.softmax_done:
            p = kwargs.get("p", rest[0] if rest else 0.5)
            return self.changed(F.dropout, (), {"p": p, "training": kwargs.get("training", True)}, dropout=p if kwargs.get("training", True) else 0.0)
        if name in PRODUCTS and self.softmax_done:
            self.noted()
            mask = self.mask
            if mask is not None and mask.dtype != torch.bool:
                mask = mask.to(self.query.dtype)
            return F.scaled_dot_product_attention(self.query, self.key, rest[0], attn_mask=mask, dropout_p=self.dropout, scale=self.scale)
        return None


def scores(is_inside, noted):
    """In place of a product in that function whose result is no value of attention."""
    def product(func, args, kwargs):
        query, transposed = args[0], args[1]
        if isinstance(query, Deferred) or query.ndim < 3 or not query.is_cuda or not is_inside():
            return None
        key = transposed.transpose(-2, -1)
        if transposed.stride(-1) == 1 or query.shape[:-2] != key.shape[:-2]:
            return None  # values are not transposed
        like = torch.empty((*query.shape[:-1], key.shape[-2]), dtype=query.dtype, device="meta")
        out = Scores(lambda: func(query, transposed), like)
        out.query, out.key, out.noted = query, key, noted
        return out

    return product


# ---- logits ----

ALONG = {"view", "reshape", "flatten", "contiguous", "float", "to", "__getitem__", "div", "__truediv__", "mul", "__mul__", "type"}


class Logits(Deferred):
    """hidden: what the last layer is given, shaped as the positions are; rowwise: what is done with each row of logits."""
    hidden = layer = noted = None
    given = property(lambda self: self.hidden)
    rowwise = ()

    def compute(self):
        with torch._C.DisableTorchFunction():
            return self.part(self.hidden)

    def changed(self, func, rest, kwargs, hidden=None, rowwise=None):
        out = Logits(self.begin, func(self.like, *rest, **kwargs), [*self.operations, (func, rest, kwargs)])
        out.layer, out.noted = self.layer, self.noted
        out.hidden, out.rowwise = self.hidden if hidden is None else hidden, self.rowwise if rowwise is None else rowwise
        return out

    def follow(self, name, args, kwargs):
        rest = args[1:]
        if name == "cross_entropy":
            return self.loss(*rest, **kwargs)
        if name == "gather":
            return self.picked(*rest, **kwargs)
        if name == "log_softmax" and (kwargs.get("dim", rest[0] if rest else None)) in (-1, self.like.ndim - 1):
            dtype = kwargs.get("dtype")
            like = self.like if dtype is None else self.like.to(dtype)
            return self.changed(lambda x: like, (), {}, rowwise=(*self.rowwise, (torch.log_softmax, (-1,), {"dtype": dtype})))
        if name not in ALONG:
            return None
        func = getattr(torch.Tensor, name)
        like = func(self.like, *rest, **kwargs)
        if name in ("float", "to", "type", "div", "__truediv__", "mul", "__mul__"):
            if name == "to" and like.device != self.like.device:
                kwargs, rest = {"dtype": like.dtype}, ()
            return self.changed(func, rest, kwargs, rowwise=(*self.rowwise, (func, rest, kwargs)))
        if name == "contiguous":
            return self
        if like.shape[-1] != self.like.shape[-1]:
            return None
        if name == "__getitem__":
            return self.changed(func, rest, kwargs, hidden=self.hidden[rest[0]])
        return self.changed(func, rest, kwargs, hidden=self.hidden.reshape(*like.shape[:-1], self.hidden.shape[-1]))

    def part(self, hidden):
        out = F.linear(hidden, *self.layer)
        for func, rest, kwargs in self.rowwise:
            out = func(out, *rest, **kwargs)
        return out

    def picked(self, dim, index):
        """A value of each row, such as the log-probability of a token."""
        if dim not in (-1, self.like.ndim - 1) or index.shape[:-1] != self.like.shape[:-1]:
            return None
        self.noted()
        parts = zip(self.hidden.reshape(-1, self.hidden.shape[-1]).chunk(PIECES), index.reshape(-1, index.shape[-1]).chunk(PIECES))
        return torch.cat([checkpoint(lambda h, i: self.part(h).gather(-1, i), h, i, use_reentrant=False) for h, i in parts]).reshape(index.shape)

    def loss(self, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
        if self.like.ndim != 2 or target.ndim != 1 or weight is not None or reduction == "none":
            return None

        def part(hidden, target):
            return F.cross_entropy(self.part(hidden), target, ignore_index=ignore_index, reduction="sum", label_smoothing=label_smoothing)

        self.noted()
        total = sum(checkpoint(part, h, t, use_reentrant=False) for h, t in zip(self.hidden.chunk(PIECES), target.chunk(PIECES)))
        return total / (target != ignore_index).sum() if reduction == "mean" else total


def logits(size, noted):
    """In place of the result of a layer that has that size, or the values of a log-softmax of that size."""
    def linear(func, args, kwargs):
        hidden, weight = args[0], args[1]
        values = hidden.numel() // hidden.shape[-1] * weight.shape[0]
        if isinstance(hidden, Deferred) or not torch.is_grad_enabled() or not any(0.9 * size < each * values < 1.1 * size for each in (2, 4)):
            return None
        dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled() else weight.dtype
        out = Logits(lambda: func(*args, **kwargs), torch.empty((*hidden.shape[:-1], weight.shape[0]), dtype=dtype, device="meta"))
        out.hidden, out.layer, out.noted = hidden, (weight, args[2] if len(args) > 2 else kwargs.get("bias")), noted
        return out

    return linear
