# SPDX-License-Identifier: Apache-2.0
"""Programs with PyTorch start and end in two thirds of the processor time: the garbage collector does not run during `import torch`, and
afterwards leaves alone the half million objects that it made, also when the interpreter ends. Objects of the program are collected as
ever. The first optimizer imports torch._dynamo; where a program seems to have one this is done right away.

On the PYTHONPATH of the end-to-end tests (e2e/conftest.py). Tests of how programs end leave it out."""
import importlib.machinery
import sys


def program_text():
    """The program behind -c or in a file; nothing of a module, such as a launcher of ranks."""
    words = iter(sys.orig_argv[1:])
    for word in words:
        if word in ("-c", "-m"):
            return next(words) if word == "-c" else ""
        if word.endswith(".py"):
            try:
                with open(word, encoding="utf-8", errors="replace") as f:
                    return f.read()
            except OSError:
                break
    return ""


class TorchFinder:
    """Finds torch as ever, and puts `load` around the run of its code."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(cls)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            spec.loader.exec_module = load(spec.loader.exec_module)
        return spec


def load(exec_module):
    def run(module):
        import gc
        gc.disable()
        try:
            exec_module(module)
            if ".optim" in program_text():
                import torch._dynamo  # noqa: F401
            gc.freeze()
        finally:
            gc.enable()
    return run


sys.meta_path.insert(0, TorchFinder)
