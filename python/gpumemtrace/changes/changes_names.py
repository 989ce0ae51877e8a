# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""Names and lists that hold tensors longer than the program needs them. Names are found in the frames at work and in the program's
globals, and set to None."""
import collections
import ctypes
import gc
import os
import sys

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode

from .changes_places import around_calls, before_backward, is_at

DEEP = 4
LEFT_OUT = "/torch/", os.path.dirname(os.path.abspath(__file__)) + "/", "runpy"


def tensors(value, deep=DEEP):
    """Those in a value, through containers and results of a library that are objects of fields."""
    if isinstance(value, torch.Tensor):
        yield value
    elif deep and isinstance(value, dict):
        for v in value.values():
            yield from tensors(v, deep - 1)
    elif deep and isinstance(value, (list, tuple, collections.deque)):
        for v in value:
            yield from tensors(v, deep - 1)


def storage(tensor):
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return 0


def program_frames():
    frame = sys._getframe(2)
    while frame:
        if not any(part in frame.f_code.co_filename for part in LEFT_OUT):
            yield frame
        frame = frame.f_back


def forget(frame, name):
    if frame.f_code.co_name == "<module>":
        frame.f_globals[name] = None
        return
    frame.f_locals[name] = None
    if sys.version_info < (3, 13):  # from then on f_locals are the variables themselves
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


class Held(TorchFunctionMode):
    """Results of torch's functions that a line called, by their storages."""

    def __init__(self, is_line):
        super().__init__()
        self.is_line, self.made, self.turns = is_line, {}, 0
        self.__enter__()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        frame = sys._getframe(1)
        while frame and not self.is_line(frame):
            frame = frame.f_back
        for t in tensors(out) if frame else ():
            if storage(t):
                self.made[storage(t)] = StorageWeakRef(t.untyped_storage()), self.turns
        return out

    def turn(self):
        self.turns += 1

    def is_held(self, tensor, older=False):
        made = self.made.get(storage(tensor))
        return made and not made[0].expired() and (not older or made[1] < self.turns)

    def forget(self, keep):
        """Names that hold such results, but what the caller goes on with. How many; 0 where a list holds some too: those are filled, not made."""
        kept = {id(t) for t in tensors(keep)} | {storage(t) for t in tensors(keep)}
        count, lists = 0, False
        for frame in program_frames():
            for name, value in list(frame.f_locals.items()):
                found = list(tensors(value))
                if isinstance(value, (list, collections.deque)):
                    lists |= any(map(self.is_held, found))
                elif any(self.is_held(t) for t in found) and not any(id(t) in kept or storage(t) in kept for t in found):
                    forget(frame, name)
                    count += 1
                del value, found
        return 0 if lists else count


def contained():
    """(tensor, container, key) of the tensors in lists, dictionaries and queues of the program; variables and weights are none of these."""
    for holder in gc.get_objects():
        if type(holder) in (list, collections.deque):
            items = list(enumerate(holder))
        elif type(holder) is dict and "__builtins__" not in holder:
            items = list(holder.items())
        else:
            continue
        found = [(value, key) for key, value in items if issubclass(type(value), torch.Tensor)]
        if not any(issubclass(type(value), nn.Parameter) for value, _ in found):
            yield from ((value, holder, key) for value, key in found)


def forgotten_before_backward(change, noted, say):
    held = Held(lambda frame: is_at(frame, change.value.file, change.value.line))

    def forget_all(loss):
        if held.forget(keep=loss):
            noted()

    before_backward(forget_all)


def kept_on_host(change, noted, say):
    """Moves results of earlier steps that lists and dictionaries keep, of this line or with a graph, to the host."""
    held = Held(lambda frame: is_at(frame, change.value.file, change.value.line))

    def around(module, call, args, kwargs):
        for tensor, container, key in contained():
            if held.is_held(tensor, older=True) or tensor.grad_fn is not None:
                container[key] = tensor.detach().cpu()
                noted()
        held.turn()
        return call(*args, **kwargs)

    around_calls(around, outermost=True)
