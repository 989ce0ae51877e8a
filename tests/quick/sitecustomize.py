# SPDX-License-Identifier: Apache-2.0
"""Programs with PyTorch start and end in half of the processor time: the garbage collector does not run during `import torch`, and
afterwards leaves alone the half million objects that it made, also when the interpreter ends. Objects of the program are collected as
ever. What `import torch` loads for programs that trace, and what optimizers and checkpoints import only to tell it to leave them alone,
is loaded when a program uses it: torch.export, the compiler (torch._dynamo), and what operators do with tensors that have no memory.

On the PYTHONPATH of the end-to-end tests (e2e/conftest.py). Tests of how programs end leave it out."""
import functools
import importlib.machinery
import sys
import types


class Later(types.ModuleType):
    """Stands in for a module until something of it is used."""
    __path__ = []

    def __init__(self, name):
        super().__init__(name)
        sys.modules[name] = self
        self.finder = types.SimpleNamespace(find_spec=self.find_part)  # importlib.metadata asks what stands there for more
        sys.meta_path.insert(0, self.finder)

    def load(self):
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
            sys.meta_path.remove(self.finder)
        return importlib.import_module(self.__name__)  # also where another thread imports it just now

    def __getattr__(self, name):
        if name.startswith("__"):  # whoever goes through all modules
            raise AttributeError(name)
        return getattr(self.load(), name)

    def is_part(self, name):
        return name.startswith(self.__name__ + ".")

    def find_part(self, name, path=None, target=None):
        """One of its parts is imported: they come with the whole, or are found in its folder."""
        if not self.is_part(name):
            return None
        module = self.load()
        if name not in sys.modules:
            return importlib.machinery.PathFinder.find_spec(name, getattr(module, "__path__", path))
        part = sys.modules[name]
        spec = vars(part)["__spec__"] = importlib.machinery.ModuleSpec(name, Loaded(part))  # import takes that of a module that is loaded already
        return spec


class Rules(types.SimpleNamespace):
    """A part of the compiler: init_process_group clears a cache of it, which is not there yet."""

    def clear_lru_cache(self):
        """Nothing is in it."""

    def __getattr__(self, name):
        return getattr(self.compiler.load().trace_rules, name)


class Compiler(Later):

    def __init__(self, torch):
        super().__init__("torch._dynamo")
        self.left_alone, self.trace_rules = [], Rules(compiler=self)
        torch._dynamo = self

    def graph_break(self, *_, **__):
        """Says nothing to a compiler that is not there."""

    def disable(self, function, *_, **__):
        """What torch._compile keeps with the function, until there is a compiler."""
        self.left_alone.append(function)
        return function

    def load(self):
        for function in self.left_alone:
            vars(function).pop("__dynamo_disable", None)
        return super().load()


class Registrations(Later):
    """What operators do with tensors that have no memory, and how they are taken apart: for whoever imports that, or makes such a tensor.
    Programs that use torch.ops.prims, or functionalize(), import torch._prims themselves, or run without this folder."""
    library = None

    def is_part(self, name):
        return self.library and name in ("torch._decomp", "torch._prims", "torch._refs", "torch.utils._content_store")

    def wait(self, torch):
        """For the first such tensor."""
        import warnings
        self.library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the operators have this already
            for name, overload in (("empty", "memory_format"), ("empty_strided", "default")):
                self.library.impl(f"{name}.{overload}".removesuffix(".default"), functools.partial(self.make, name, overload), "Meta")

    def make(self, name, overload, *args, **kw):
        self.load()
        return getattr(getattr(sys.modules["torch"].ops.aten, name), overload)(*args, **kw)

    def load(self):
        if self.library:
            self.library._destroy()
            self.library = None
        return super().load()


class Loaded:
    """Gives a module that is there."""

    def __init__(self, module):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        vars(module)["__spec__"] = self.spec


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
        import inspect
        of_frame = inspect.getframeinfo
        inspect.getframeinfo = lambda frame, context=0: of_frame(frame, 0)  # lines of source, for which it asks all modules for their files, are not looked at
        gc.disable()
        try:
            Later("torch.export")
            registrations = Registrations("torch._meta_registrations")
            exec_module(module)
            registrations.wait(module)
            if module.__name__ + "._dynamo" not in sys.modules:
                Compiler(module)
            gc.freeze()
        finally:
            inspect.getframeinfo = of_frame
            gc.enable()
    return run


sys.meta_path.insert(0, TorchFinder)
