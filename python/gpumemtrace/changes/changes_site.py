# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
# sitecustomize.py of the programs that `run --with` starts: makes the changes as soon as torch is imported. A sitecustomize that
# this one hides is run first.
import importlib.machinery
import os
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))


def run_hidden():
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", [p for p in sys.path if p and os.path.abspath(p) != HERE])
    if spec and spec.loader:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


class TorchFinder:
    """Finds torch as the others do, and makes the changes when its code has run."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(cls)
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            spec.loader.exec_module = followed(spec.loader.exec_module)
        return spec


def followed(exec_module):
    def run(module):
        exec_module(module)
        package = sys.modules["gpumemtrace_changes"] = types.ModuleType("gpumemtrace_changes")
        package.__path__ = [HERE]
        try:
            from gpumemtrace_changes import changes_start
        except ImportError:  # `run` has ended and removed the folder
            return
        changes_start.start(HERE)
    return run


if sys.version_info >= (3, 8) and os.environ.get("GPUMEMTRACE_WITH"):
    import importlib.util

    run_hidden()
    sys.meta_path.insert(0, TorchFinder)
