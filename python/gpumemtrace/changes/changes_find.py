# SPDX-License-Identifier: Apache-2.0
"""The changes that make a finding of `advise`, or a remedy of `oom`."""
from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Mapping

from .changes_table import ROWS

Finding = Mapping[str, Any]


def place_of(finding: Finding) -> str:
    """FILE:LINE; remedies have them in their words."""
    if finding.get("line"):
        return f"{'/'.join(str(finding['file']).split('/')[-2:])}:{finding['line']}"
    found = re.findall(r"(\S+\.py):(\d+)", str(finding.get("what", "")))
    return f"{found[-1][0].lstrip('(')}:{found[-1][1]}" if found else ""


def class_of(finding: Finding) -> str:
    found = re.match(r"Checkpoint (\w+)", finding["what"])
    return found[1] if found else ""


def allocator_of(finding: Finding) -> str:
    """None for a setting that is to be removed."""
    found = re.search(r"Set PYTORCH_CUDA_ALLOC_CONF=(\S+?)[:;,.]?(?:\s|$)", finding["what"])
    return found[1] if found and found[1] != "default" else ""


def function_of(finding: Finding) -> str:
    return f"sdpa@{finding['function']}" if finding.get("function") else "sdpa"


# change -> its value for a finding, "" if that cannot be read from it; the others have their default
VALUES: Dict[str, Callable[[Finding], str]] = {
    "checkpoint": class_of,
    "attention": function_of,
    "no_grad": lambda finding: "frozen" if kind_of(finding) == "frozen_graph" else place_of(finding),
    "del": place_of,
    "kept": place_of,
    "logits": place_of,
    "allocator": allocator_of,
    "cublas_workspace": lambda finding: (re.findall(r"CUBLAS_WORKSPACE_CONFIG=(\S+?)[:,]?\s", finding["what"]) or [""])[0],
}


def kind_of(finding: Finding) -> str:
    """The kind of a finding, or the name of a remedy."""
    kind = str(finding.get("kind") or finding.get("name") or "")
    return "fused_optimizer" if kind == "foreach_off" and "fused=True" in str(finding.get("what", "")) else kind


def by_hand(finding: Finding) -> List[str]:
    """How to write it, and arguments of frameworks, where no change makes it."""
    rows = (row for row in ROWS if not row.make and kind_of(finding) in row.kinds)
    return [text for row in rows for text in (row.how, *(f"{name}: {given}" for name, given in row.arguments.items()))]


def for_finding(finding: Finding) -> List[str]:
    """NAME=VALUE of each; none: no change makes it."""
    found = []
    for row in ROWS:
        if row.make and kind_of(finding) in row.kinds:
            value = VALUES.get(row.name, lambda finding, row=row: row.default)(finding)
            found += [f"{row.name}={value}"] if value else [] if row.name in VALUES else [row.name]
    return found
