# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""Weights in fewer bits, or on the host while they wait."""
import weakref

import torch
from torch import nn

from .changes_places import around_calls, around_steps, before_backward, trained, with_each_optimizer
from .changes_saved import is_frozen

BF16 = torch.bfloat16


def converted(value, dtype):
    """Floating tensors of what a module is given or gives."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if type(value) in (tuple, list):
        return type(value)(converted(v, dtype) for v in value)
    return {k: converted(v, dtype) for k, v in value.items()} if type(value) is dict else value


def dtype_of(value):
    return next((t.dtype for t in value if isinstance(t, torch.Tensor) and t.is_floating_point()), None)


def in_bf16(noted, is_meant, whole=False):
    """Weights of modules are converted before they move to a device and before the first call; whole: with what a model is given. Where other
    modules meet them the values go on in the type that they have: a module casts what it is given to the type of its weights, and its result back."""
    done, roots = weakref.WeakSet(), weakref.WeakSet()

    def convert(root):
        for m in root.modules():
            own = [p for p in m._parameters.values() if p is not None and p.dtype == torch.float32]
            if own and is_meant(m, own):
                done.add(m)
                noted()
                for t in own + [b for b in m._buffers.values() if b is not None and b.dtype == torch.float32]:
                    t.data = t.data.to(BF16)

    def around(module, call, args, kwargs):
        if not around.depth and module not in roots:
            roots.add(module)
            convert(module)
        given = dtype_of((*args, *kwargs.values()))
        if whole and not around.depth:
            args, kwargs = converted(args, BF16), converted(kwargs, BF16)
        own = next((p.dtype for p in module._parameters.values() if p is not None and p.is_floating_point()), None) if done else None
        around.depth += 1
        try:
            if own is None or given in (None, own) or torch.is_autocast_enabled():
                out = call(*args, **kwargs)
                return converted(out, given) if whole and given and around.depth == 1 else out
            return converted(call(*converted(args, own), **converted(kwargs, own)), given)
        finally:
            around.depth -= 1

    around.depth = 0
    around_calls(around)
    apply = nn.Module._apply

    def moved(self, fn, *args, **kwargs):
        convert(self)
        return apply(self, fn, *args, **kwargs)

    nn.Module._apply = moved


def frozen(change, noted, say):
    """Modules none of whose own weights is trained."""
    updated = set()  # ids: weak references to tensors compare values
    with_each_optimizer(lambda opt: updated.update(map(id, trained(opt))))
    in_bf16(noted, lambda m, own: not any(p.requires_grad or id(p) in updated for p in own))


def parameters(change, noted, say):
    in_bf16(noted, lambda m, own: True, whole=True)


def autocast(change, noted, say):
    def around(module, call, args, kwargs):
        noted()
        device = next((p.device.type for p in module.parameters()), "cuda")
        with torch.autocast(device, dtype=BF16):
            return call(*args, **kwargs)

    around_calls(around, outermost=True)


def autocast_cache(change, noted, say):
    """Where no graph is made."""
    plain = torch.autocast.__enter__

    def enter(self):
        if not torch.is_grad_enabled() and self._cache_enabled:
            self._cache_enabled = False
            noted()
        return plain(self)

    torch.autocast.__enter__ = enter


def idle_on_host(change, noted, say):
    """Modules none of whose parameters is trained go to the host before backward, and come back where they are called, or after the
    optimizer's step if they never are."""
    modules, known, called, away = weakref.WeakSet(), set(), weakref.WeakSet(), weakref.WeakKeyDictionary()
    begin, copied = nn.Module.__init__, nn.Module.__setstate__

    def init(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        modules.add(self)

    def restored(self, state):  # a deep copy
        copied(self, state)
        modules.add(self)

    def roots():
        children = {id(c) for m in modules for c in m.children()}
        every = [m for m in modules if id(m) not in children and any(True for _ in m.parameters())]
        return [m for m in every if not any(id(p) in known or p.grad is not None for p in m.parameters())]

    def send(m):
        device = next(m.parameters()).device
        if m not in away and device.type != "cpu":
            noted()
            m.to("cpu")
            away[m] = device

    def come(m):
        if m in away:
            m.to(away.pop(m))

    def around(module, call, args, kwargs):
        called.add(module)
        come(module)
        out = call(*args, **kwargs)
        if module in roots() and is_frozen(module):
            send(module)
        return out

    def after(opt):
        known.update(map(id, trained(opt)))
        for m in [m for m in away if m not in called]:
            come(m)

    nn.Module.__init__, nn.Module.__setstate__ = init, restored
    around_calls(around, outermost=True)
    before_backward(lambda *_: [send(m) for m in roots()])
    around_steps(after=after)
    with_each_optimizer(lambda opt: known.update(map(id, trained(opt))))
