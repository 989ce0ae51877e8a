# SPDX-License-Identifier: Apache-2.0
# What `gpumemtrace collect`, `sql` and `dashboard` start Python with (viewer/lake/lake_request.c). The modules beside this file lie
# inside the tool and come on stdin, so that any Python that has DuckDB will do, gpumemtrace installed or not.
from __future__ import annotations

import json
import sys
import types
from typing import Any, List, Tuple

sys.path[:] = [p for p in sys.path if p not in ("", ".")]


def load(modules: List[Tuple[str, str]]) -> Any:
    package = types.ModuleType("gpumemtrace_lake")
    setattr(package, "__path__", [])
    sys.modules[package.__name__] = package
    for name, text in modules:
        module = types.ModuleType(f"{package.__name__}.{name}")
        module.__package__ = package.__name__
        sys.modules[module.__name__] = module
        setattr(package, name, module)
        exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return module


head, *words = sys.stdin.buffer.read().split(b"\0")
request = json.loads(head)
load(request.pop("modules")).main(request, words[:-1])
