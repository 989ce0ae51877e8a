# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""The loss of an eighth of the positions at a time, each part checkpointed. Logits are not computed until a loss takes them: a slice of
them is computed from the slice of the last layer's input."""
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from .changes_deferred import Deferred
from .changes_places import InPlaceOf

PIECES, WIDE = 8, 5
ALONG = {"view", "reshape", "flatten", "contiguous", "float", "to", "__getitem__", "div", "__truediv__", "mul", "__mul__", "type"}


class Logits(Deferred):
    """hidden: what the last layer is given, shaped as the positions are; rowwise: what is done with each row of logits."""
    hidden = layer = noted = use = None
    given = property(lambda self: self.hidden)
    rowwise = ()

    def compute(self):
        self.use[1] += 1
        return self.part(self.hidden)

    def changed(self, func, rest, kwargs, hidden=None, rowwise=None):
        out = Logits(self.begin, func(self.like, *rest, **kwargs), [*self.operations, (func, rest, kwargs)])
        out.layer, out.noted, out.use = self.layer, self.noted, self.use
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
        with torch._C.DisableTorchFunction():
            out = F.linear(hidden, *self.layer)
            for func, rest, kwargs in self.rowwise:
                out = func(out, *rest, **kwargs)
        return out

    def went_to_loss(self):
        self.use[0] += 1
        self.noted()

    def picked(self, dim, index):
        """A value of each row, such as the log-probability of a token."""
        if dim not in (-1, self.like.ndim - 1) or index.shape[:-1] != self.like.shape[:-1]:
            return None
        self.went_to_loss()
        parts = zip(self.hidden.reshape(-1, self.hidden.shape[-1]).chunk(PIECES), index.reshape(-1, index.shape[-1]).chunk(PIECES))
        return torch.cat([checkpoint(lambda h, i: self.part(h).gather(-1, i), h, i, use_reentrant=False) for h, i in parts]).reshape(index.shape)

    def loss(self, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
        if self.like.ndim != 2 or target.ndim != 1 or weight is not None or reduction == "none":
            return None

        def part(hidden, target):
            return F.cross_entropy(self.part(hidden), target, ignore_index=ignore_index, reduction="sum", label_smoothing=label_smoothing)

        self.went_to_loss()
        total = sum(checkpoint(part, h, t, use_reentrant=False) for h, t in zip(self.hidden.chunk(PIECES), target.chunk(PIECES)))
        return total / (target != ignore_index).sum() if reduction == "mean" else total


def logits(noted):
    """In place of the result of a layer that is as wide as a vocabulary: far wider than its input. A layer whose result is used otherwise, and
    goes to no loss, is left alone from then on."""
    uses = {}  # id of a weight -> how often it went to a loss, and elsewhere

    def linear(func, args, kwargs):
        hidden, weight = args[0], args[1]
        if isinstance(hidden, Deferred) or not torch.is_grad_enabled() or weight.shape[0] < WIDE * weight.shape[1]:
            return None
        use = uses.setdefault(id(weight), [0, 0])
        if use[1] and not use[0]:
            return None
        dtype = torch.get_autocast_dtype(hidden.device.type) if torch.is_autocast_enabled() else weight.dtype
        out = Logits(lambda: func(*args, **kwargs), torch.empty((*hidden.shape[:-1], weight.shape[0]), dtype=dtype, device="meta"))
        out.hidden, out.layer, out.noted, out.use = hidden, (weight, args[2] if len(args) > 2 else kwargs.get("bias")), noted, use
        return out

    return linear


def loss_in_pieces(change, noted, say):
    InPlaceOf(("linear",), logits(noted))
