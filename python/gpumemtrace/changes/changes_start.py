# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""Makes the changes in the process that has just imported torch."""
import functools
import importlib
import os

from .changes_effect import Effects
from .changes_table import parse


def start(folder):
    changes = [parse(text) for text in os.environ["GPUMEMTRACE_WITH"].split(";")]
    effects = Effects(folder, len(changes))
    from .changes_places import around_steps
    for i, change in enumerate(changes):
        module, _, function = change.row.make.partition(":")
        try:
            made = getattr(importlib.import_module("." + module, __package__), function)
            made(change, effects.noted(i), functools.partial(effects.say, i))
        except Exception as error:  # the program goes on without it
            effects.say(i, f"{type(error).__name__}: {error}")
    around_steps(after=lambda opt: effects.step())
