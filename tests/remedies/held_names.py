# SPDX-License-Identifier: Apache-2.0
"""Names that hold tensors: found in the frames at work and in the program's globals, and deleted as `del` would."""
import collections
import ctypes
import gc
import sys

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode

DEEP = 4


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
        if "/torch/" not in frame.f_code.co_filename and "/tests/remedies/" not in frame.f_code.co_filename and "runpy" not in frame.f_code.co_filename:
            yield frame
        frame = frame.f_back


def delete(frame, name):
    if frame.f_code.co_name == "<module>":
        del frame.f_globals[name]
        return
    names = frame.f_locals
    del names[name]
    ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(1))


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
            if t.is_cuda and storage(t):
                self.made[storage(t)] = StorageWeakRef(t.untyped_storage()), self.turns
        return out

    def turn(self):
        self.turns += 1

    def is_held(self, tensor, older=False):
        made = self.made.get(storage(tensor)) if tensor.is_cuda else None
        return made and not made[0].expired() and (not older or made[1] < self.turns)

    def delete(self, keep):
        """Names that hold such results, but what the caller goes on with. How many; 0 where a list holds some too: those are filled, not made."""
        kept = {id(t) for t in tensors(keep)} | {storage(t) for t in tensors(keep) if t.is_cuda}
        count, lists = 0, False
        for frame in program_frames():
            for name, value in list(frame.f_locals.items()):
                found = list(tensors(value))
                if isinstance(value, (list, collections.deque)):
                    lists |= any(map(self.is_held, found))
                elif any(self.is_held(t) for t in found) and not any(id(t) in kept or storage(t) in kept for t in found):
                    delete(frame, name)
                    count += 1
                del value, found
        return 0 if lists else count


def contained():
    """(tensor, container, key) of the tensors in lists, dictionaries and queues of the program."""
    for holder in gc.get_objects():
        if type(holder) in (list, collections.deque):
            items = enumerate(list(holder))
        elif type(holder) is dict and not any(isinstance(v, nn.Parameter) for v in list(holder.values())[:50]):
            items = list(holder.items())
        else:
            continue
        for key, value in items:
            if isinstance(value, torch.Tensor) and value.is_cuda and not isinstance(value, nn.Parameter):
                yield value, holder, key
