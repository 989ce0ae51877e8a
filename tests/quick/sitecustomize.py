# SPDX-License-Identifier: Apache-2.0
"""Programs with PyTorch start and end in half of the processor time: the garbage collector does not run during `import torch`, and
afterwards leaves alone the half million objects that it made, also when the interpreter ends. Objects of the program are collected as
ever. Optimizers and checkpoints import the compiler, torch._dynamo, only to tell it to leave them alone: it is loaded when a program
uses it for anything else.

On the PYTHONPATH of the end-to-end tests (e2e/conftest.py). Tests of how programs end leave it out."""
import importlib.machinery
import sys
import types


class Rules(types.SimpleNamespace):
    """One of its parts: init_process_group clears a cache of it, which is not there yet."""

    def clear_lru_cache(self):
        """Nothing is in it."""

    def __getattr__(self, name):
        return getattr(self.compiler.load().trace_rules, name)


class Compiler(types.ModuleType):
    """Stands in for torch._dynamo until something of it is used."""
    __path__ = []

    def __init__(self, torch):
        super().__init__("torch._dynamo")
        self.left_alone, self.trace_rules = [], Rules(compiler=self)
        sys.modules[self.__name__] = torch._dynamo = self
        sys.meta_path.insert(0, self)

    def graph_break(self, *_, **__):
        """Says nothing to a compiler that is not there."""

    def disable(self, function, *_, **__):
        """What torch._compile keeps with the function, until there is a compiler."""
        self.left_alone.append(function)
        return function

    def load(self):
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
            sys.meta_path.remove(self)
            for function in self.left_alone:
                vars(function).pop("__dynamo_disable", None)
            importlib.import_module(self.__name__)
        return sys.modules[self.__name__]

    def __getattr__(self, name):
        if name.startswith("__"):  # whoever goes through all modules
            raise AttributeError(name)
        return getattr(self.load(), name)

    def find_spec(self, name, path=None, target=None):
        """One of its parts is imported: they come with the whole, or are found in its folder."""
        if not name.startswith(self.__name__ + "."):
            return None
        folder = self.load().__path__
        if name in sys.modules:
            return importlib.machinery.ModuleSpec(name, Loaded(sys.modules[name]))
        return importlib.machinery.PathFinder.find_spec(name, folder)


class Loaded:
    """Gives a module that is there."""

    def __init__(self, module):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        module.__spec__ = self.spec


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
            if module.__name__ + "._dynamo" not in sys.modules:
                Compiler(module)
            gc.freeze()
        finally:
            gc.enable()
    return run


sys.meta_path.insert(0, TorchFinder)
