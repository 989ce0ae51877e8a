# SPDX-License-Identifier: Apache-2.0
"""Changes of a program that lower its peak, made from outside: one table, and a function for each that makes it in a running program
(`gpumemtrace run --with NAME=VALUE`)."""
from .changes_find import by_hand, for_finding
from .changes_row import Change, Row
from .changes_table import ROWS, WrongChange, parse

__all__ = ["ROWS", "Change", "Row", "WrongChange", "by_hand", "for_finding", "parse"]
