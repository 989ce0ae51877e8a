# SPDX-License-Identifier: Apache-2.0
"""A program of cases.py or others.py, run by its name; `after` = with the advice followed by an edit. The kind of finding
that is followed stands in its decorator, where table.py reads it."""
import sys

AFTER = sys.argv[2:] == ["after"]
PROGRAMS = {}


def case(kind):
    def note(function):
        PROGRAMS[function.__name__] = function
        return function
    return note


def run():
    PROGRAMS[sys.argv[1]]()
