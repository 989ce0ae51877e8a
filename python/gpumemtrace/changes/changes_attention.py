# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""One fused call in place of scores, softmax and the product with the values. Scores are not computed until that product."""
import math

import torch
import torch.nn.functional as F

from .changes_deferred import Deferred
from .changes_places import InPlaceOf, frames

PRODUCTS = ("matmul", "bmm", "__matmul__")


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
        if isinstance(query, Deferred) or query.ndim < 3 or not is_inside():
            return None
        key = transposed.transpose(-2, -1)
        if transposed.stride(-1) == 1 or query.shape[:-2] != key.shape[:-2]:
            return None  # values are not transposed
        like = torch.empty((*query.shape[:-1], key.shape[-2]), dtype=query.dtype, device="meta")
        out = Scores(lambda: func(query, transposed), like)
        out.query, out.key, out.noted = query, key, noted
        return out

    return product


def fused_attention(change, noted, say):
    def is_inside():
        return change.value is None or any(getattr(f.f_code, "co_qualname", f.f_code.co_name).endswith(change.value) for f in frames())

    InPlaceOf(PRODUCTS, scores(is_inside, noted))
