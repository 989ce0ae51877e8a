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


def load(package_name: str, modules: List[Tuple[str, str]]) -> Any:
    package = types.ModuleType(package_name)
    setattr(package, "__path__", [])
    sys.modules[package.__name__] = package
    for name, text in modules:
        module = types.ModuleType(f"{package.__name__}.{name}")
        module.__package__ = package.__name__
        sys.modules[module.__name__] = module
        setattr(package, name, module)
        exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return module


if sys.version_info < (3, 9):
    sys.exit(97)
request = json.loads(sys.stdin.buffer.read())
os.write(3, b'{"begun": true}\n')
load(request.pop("package"), request.pop("modules")).main(request)
