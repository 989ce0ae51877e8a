# SPDX-License-Identifier: Apache-2.0
"""On the PYTHONPATH of a program that uses_judge.py runs: notes which memory each operator of PyTorch reads and writes.

Around every operator that PyTorch dispatches stands a mark of the recording, and a line of JSON in the file that
GPUMEMTRACE_TEST_OPERATORS names (`%p` is the process) says what the operator was given and what it gave back: address
and bytes of each tensor's storage. Marks and lines have the same order, since both are made with the GIL held."""
import ctypes
import importlib.abc
import importlib.machinery
import json
import os
import sys


def watch():
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    library = ctypes.PyDLL(None)
    mark = library.gpumemtrace_mark
    log = open(os.environ["GPUMEMTRACE_TEST_OPERATORS"].replace("%p", str(os.getpid())), "w", buffering=1)

    def memory(values):
        found = set()
        for t in tree_leaves(values):
            if isinstance(t, torch.Tensor) and type(t) in (torch.Tensor, torch.nn.Parameter) and t.is_cuda and t.layout == torch.strided and t.numel():
                s = t.untyped_storage()
                found.add((s.data_ptr(), s.nbytes()))
        return sorted(f for f in found if f[0] and f[1])

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            arguments = [[a.name, memory(v)] for a, v in
                         [*zip(func._schema.arguments, args), *((a, kwargs[a.name]) for a in func._schema.arguments if a.name in kwargs)]]
            mark(b"operator begins")
            try:
                result = func(*args, **kwargs)
            except BaseException:
                log.write(json.dumps({"operator": "raised", "arguments": [], "results": []}) + "\n")
                mark(b"operator ends")
                raise
            several = result if isinstance(result, (tuple, list)) and len(result) <= 16 else [result]
            results = [[f"result {i}", memory(r)] for i, r in enumerate(several)]
            log.write(json.dumps({"operator": str(func), "arguments": [a for a in arguments if a[1]], "results": [r for r in results if r[1]]}) + "\n")
            mark(b"operator ends")
            return result

    Watch().__enter__()


class TorchFinder(importlib.abc.MetaPathFinder):
    """Finds torch as ever, and begins to watch when its code has run."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(cls)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            watch()

        spec.loader.exec_module = exec_module
        return spec


if os.environ.get("GPUMEMTRACE_TEST_OPERATORS"):
    sys.meta_path.insert(0, TorchFinder)
