# SPDX-License-Identifier: Apache-2.0
"""uses.py OUT WHAT...: what each operator reads and writes against what its launches name (tests/e2e/launches.c), as JSON.
WHAT: a model of models.py or zoo_models.py, trained for two steps, or a group of zoo_ops.py."""
import ctypes
import json
import sys
import warnings
from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import models
import zoo_models
import zoo_ops

TAKE = ctypes.CDLL(None).launches_take
TAKE.restype = ctypes.c_char_p

# What operators are given and do not read, or return and do not write: by position, keyword, or "out" for a result.
SHAPE_ALONE = {0}
NOT_USED = {
    **dict.fromkeys(["zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "new_zeros", "new_ones", "new_full"], SHAPE_ALONE),
    "nll_loss_backward": {1, 4},  # the input: its shape; the sum of the weights: only for a mean
    "nll_loss2d_backward": {1, 4},
    "native_layer_norm_backward": {6},  # the bias: whether there is one
    "cudnn_batch_norm_backward": {3, 4},  # running averages: training has its own
    "max_pool2d_with_indices_backward": {1},  # the places of the largest are kept
    "max_pool3d_with_indices_backward": {1},
    "_adaptive_avg_pool2d_backward": {1},
    "_adaptive_avg_pool3d_backward": {1},
    "convolution_backward": {1, 2},  # of a first layer no gradient of the input is wanted, which is what the weight is for
    "_cudnn_rnn_backward": {0},  # the input: for gradients of the weights
    "_scaled_dot_product_cudnn_attention": {"out"},  # seed and offset: for dropout
    "_scaled_dot_product_cudnn_attention_backward": {6, 7},
    "_embedding_bag_backward": {2},
    "_sparse_addmm": {0},  # times beta, which is 0
}
# Operators without a kernel: they make memory, or another view of it.
SILENT = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach", "alias", "lift_fresh", "_unsafe_view",
          "_reshape_alias", "set_", "resize_", "_to_copy", "is_pinned", "record_stream", "_has_same_storage_numel",
          "transpose_", "_use_cudnn_ctc_loss", "_use_miopen_ctc_loss"}


def storage(t):
    s = t.untyped_storage()
    return s.data_ptr(), s.data_ptr() + s.nbytes()


def dense(value):
    """Tensors on the device with elements, those of sparse ones among them."""
    for t in tree_leaves(value):
        if not isinstance(t, torch.Tensor) or not t.is_cuda:
            continue
        if t.layout == torch.strided:
            if t.numel():
                yield t
        elif t.layout in (torch.sparse_csr, torch.sparse_bsr):
            yield from (x for x in (t.crow_indices(), t.col_indices(), t.values()) if x.numel())
        elif t.layout == torch.sparse_coo:
            yield from (x for x in (t._indices(), t._values()) if x.numel())


def words(lines):
    for line in lines:
        for word in line.split()[2:]:
            if word != "?":
                yield int(word, 16)


class Uses(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen, self.named = 0, 0
        self.launches = 0
        self.missing, self.without, self.unused, self.silent = Counter(), Counter(), Counter(), Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        given = [(i, list(dense(a))) for i, a in enumerate(args)] + [(k, list(dense(a))) for k, a in (kwargs or {}).items()]
        TAKE()
        out = function(*args, **(kwargs or {}))
        lines = TAKE().decode().splitlines()
        self.launches += len(lines)
        for line in lines:
            if line.endswith(" ?"):
                self.without[line.split()[1]] += 1
        if not lines and not function.is_view and any(True for _ in dense((args, out))) and name not in SILENT:
            self.silent[name] += 1
        if lines:
            self.compare(name, given + [("out", list(dense(out)))], sorted(words(lines)))
        return out

    def compare(self, name, given, known):
        for place, tensors in given:
            for t in tensors:
                begin, end = storage(t)
                named = any(begin <= w < end for w in known)
                if not named and place in NOT_USED.get(name, ()):
                    self.unused[name] += 1
                    continue
                self.seen += 1
                self.named += named
                if not named:
                    self.missing[f"{name} {place}"] += 1


def train(name):
    model, loss_of_batch = (getattr(models, name, None) or getattr(zoo_models, name))()
    optimizer = torch.optim.AdamW(p for p in model.parameters() if p.requires_grad)
    for _ in range(2):
        loss_of_batch().backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    warnings.simplefilter("ignore")
    table = {}
    for what in sys.argv[2:]:
        with Uses() as uses:
            if hasattr(zoo_ops, what):
                for case, function in getattr(zoo_ops, what)("cuda"):
                    try:
                        function()
                    except Exception as error:  # what the device cannot do is another test's matter
                        print(what, case, error)
            else:
                train(what)
        table[what] = {"launches": uses.launches, "tensors": uses.seen, "named": uses.named, "missing": uses.missing,
                       "unused": uses.unused, "without layout": uses.without, "silent": uses.silent}
    with open(sys.argv[1], "w") as f:
        json.dump(table, f, indent=1)


if __name__ == "__main__":
    main()
