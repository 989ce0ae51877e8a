# SPDX-License-Identifier: Apache-2.0
# Starts the parts of the tool that are written in Python (viewer/commands/handover.c). Their modules lie inside the tool and come on
# stdin with the question, so that any Python will do, gpumemtrace installed or not.
from __future__ import annotations

import json
import os
import sys
import types
from typing import Any, List, Tuple

sys.path[:] = [p for p in sys.path if p not in ("", ".")]


def new_module(name: str) -> types.ModuleType:
    """With its packages."""
    package, _, own = name.rpartition(".")
    module = sys.modules[name] = types.ModuleType(name)
    module.__package__ = package
    if package:
        around = sys.modules.get(package) or new_module(package)
        setattr(around, "__path__", [])
        setattr(around, own, module)
    return module


def load(modules: List[Tuple[str, str]]) -> Any:
    """The last of them."""
    for name, text in modules:
        module = new_module(f"gpumemtrace_tool.{name}")
        exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return module


if sys.version_info < (3, 9):
    sys.exit(97)
request = json.loads(sys.stdin.buffer.read())
os.write(3, b'{"begun": true}\n')
load(request.pop("modules")).main(request)
