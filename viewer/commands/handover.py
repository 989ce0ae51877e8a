# SPDX-License-Identifier: Apache-2.0
# Starts the parts of the tool that are written in Python (viewer/commands/handover.c). Their modules lie inside the tool and come on
# stdin with the question, so that any Python will do, gpumemtrace installed or not.
from __future__ import annotations

import importlib
import json
import os
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any, Dict, Optional

sys.path[:] = [p for p in sys.path if p not in ("", ".")]
PACKAGE = "gpumemtrace_tool"


class Inside:
    """Imports modules from the texts of their files, by names such as "ranks/ranks_run.py"."""

    def __init__(self, modules: str) -> None:
        parts = modules.split("\0")
        self.texts: Dict[str, str] = dict(zip(parts[::2], parts[1::2]))

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        package, _, inside = name.partition(".")
        file = inside.replace(".", "/") + ".py"
        return ModuleSpec(name, self, origin=file, is_package=file not in self.texts) if package == PACKAGE else None

    def create_module(self, spec: ModuleSpec) -> None:
        """As usual."""

    def exec_module(self, module: types.ModuleType) -> None:
        file = module.__spec__.origin
        exec(compile(self.texts.get(file, ""), file, "exec"), module.__dict__)


if sys.version_info < (3, 9):
    sys.exit(97)
request = json.loads(sys.stdin.buffer.read())
os.write(3, b'{"begun": true}\n')
sys.meta_path.insert(0, Inside(request.pop("modules")))
importlib.import_module(f"{PACKAGE}.{request.pop('main')}").main(request)
