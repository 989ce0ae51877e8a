# SPDX-License-Identifier: Apache-2.0
"""The result of a search as the document that `fit --json` prints and the search's page shows (viewer/answers/documents.def)."""
from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any, Dict, List

from .._answer import decimal, in_units, many
from .search_cells import Cell
from .search_largest import Largest, Line
from .search_measure import TOO_LITTLE
from .search_runs import Runs
from .search_sets import Search, Set
from .search_trial import REFUSED, UNSTABLE, Trial
from .search_vary import same_but


@dataclass
class Found:
    runs: Runs
    cells: List[Cell]
    temporary: bool  # the folder is removed after the search
    largest: List[Largest] = field(default_factory=list)
    lines: List[Line] = field(default_factory=list)
    searches: List[Search] = field(default_factory=list)  # for changes with which it fits

    def sets(self) -> List[Set]:
        """Sets of each card: those that fit, the cheapest first, then the others in the order in which they ran."""
        return [s for x in self.searches for s in x.in_order()]


def rises(cell: Cell) -> Dict[str, Any]:
    """Growth of a peak that rises, also if the run ended before memory ran out."""
    t = cell.trial
    rising = t.number("rising_bytes")
    if not rising or not (cell.fits or cell.verdict == UNSTABLE):
        return {}
    unit = "step" if t.number("by_steps") else "second"
    return {"rising_bytes": rising, "rising_ends": cell.ends(),
            "rising": f"+{in_units(rising)} a {unit}, out of memory after about {many(cell.ends(), unit)} on this card"}


def why_refused(trial: Trial) -> Dict[str, Any]:
    members = ("what", "saves_bytes", "at_most", "how_known")
    remedies = [{m: r.get(m) for m in members} for r in trial.oom("remedies") or ()]
    if trial.oom("cause"):
        return {"cause": trial.oom("cause"), "text": trial.oom("text") or "", "remedies": remedies}
    if TOO_LITTLE.search(trial.text("last_words")):
        return {"cause": "kv_cache", "text": trial.text("last_words"), "remedies": remedies}
    return {"cause": "unknown", "text": f"An allocation of a library failed, and the program with it: {trial.text('last_words')}", "remedies": remedies}


def needs_of(cell: Cell) -> Dict[str, Any]:
    needed, available = cell.needed(), cell.card.memory
    if not needed:
        return {"available_bytes": available}
    needed_on = (cell.roomy or cell.trial).card.name
    return {"available_bytes": available, "needed_bytes": needed, "lacking_bytes": max(needed - available, 0), "needed_on": needed_on}


def ranks_of(trial: Trial) -> Dict[str, Any]:
    out = {"ranks": trial.result["ranks"]} if trial.result.get("ranks") else {}
    if trial.number("nccl_bytes"):
        out.update((m, trial.number(m)) for m in ("nccl_bytes", "nccl_least_bytes", "nccl_most_bytes"))
    if trial.number("cudnn_estimated"):
        out.update((m, trial.number(m)) for m in ("cudnn_bytes", "cudnn_most_bytes"))
    return out


def card_of(found: Found, cell: Cell) -> Dict[str, Any]:
    t, device = cell.trial, cell.device()
    row = {
        "card": cell.card.name, "verdict": cell.verdict, "fits": cell.fits, "capacity_bytes": cell.card.memory,
        "peak_bytes": t.number("peak_bytes"), "peak_reserved_bytes": t.number("peak_reserved_bytes"), "device_bytes": device,
        "measured": cell.measured, "vary": found.runs.plan.varied.members(cell.setting), "margin_bytes": cell.card.memory - device,
        "context_bytes": max(device - t.number("peak_reserved_bytes"), 0), **needs_of(cell), "run_on": t.card.name, "steps": t.number("steps"),
        "to_end": not t.number("early"), "refusals": t.number("refusals"), "peak_text": t.text("peak_text"), "peak_class": t.text("peak_class"),
        "peak_line": t.text("peak_line"), **ranks_of(t), **rises(cell)}
    if t.number("kv_cache_tokens"):
        row["kv_cache_tokens"] = t.number("kv_cache_tokens")
    if cell.verdict == REFUSED:
        row.update(why_refused(t))
    for member, has in (("idle", cell.fits), ("late", not cell.failed), ("ended", True)):
        if t.text(member) and has:
            row[member] = t.text(member)
    if cell.failed:
        row["error"] = t.failure()
    if not found.temporary:
        row["recording"] = t.text("recording")
    return row


def without_effect(found: Found) -> List[Dict[str, str]]:
    """Names with all of whose values the same memory is needed, whatever the other values are. An engine fills what it may take."""
    rows = []
    for at, vary in enumerate(found.runs.plan.varied.items):
        pairs = [(a, b) for i, a in enumerate(found.cells) for b in found.cells[:i] if a.card == b.card and same_but(a.setting, b.setting, at)]
        if pairs and not found.cells[0].trial.number("kv_cache_tokens") and all(a.fits and b.fits and same_figures(a.trial, b.trial) for a, b in pairs):
            rows.append({"name": vary.name,
                         "text": f"With all values of {vary.name} the peak is the same to the byte: does the program use it?"})
    return rows


def same_figures(a: Trial, b: Trial) -> bool:
    return all(a.number(m) == b.number(m) for m in ("peak_bytes", "peak_reserved_bytes"))


def summary_of(found: Found) -> List[Dict[str, Any]]:
    """What matters about the run of the first row that fits, as `report` has it; if none fits, of the last row. A recording that is removed
    is named RECORDING in the commands."""
    t = next((c.trial for c in found.cells if c.fits), found.cells[-1].trial)
    items = t.result.get("summary") or []
    for item in items if found.temporary else ():
        item["action"] = re.sub(r"^(gpumemtrace \w+) ('[^']*'|\S+)", r"\1 RECORDING", item["action"])
    return items


def document_of(found: Found) -> Dict[str, Any]:
    varied = found.runs.plan.varied
    return {
        "summary": summary_of(found), "cards": [card_of(found, c) for c in found.cells],
        "largest": [{"card": x.card.name, "vary": varied.members(x.setting), "bounded": bool(x.high)} for x in found.largest if x.low],
        "lines": [{"card": x.card.name, "name": varied.items[varied.counted()].name, "vary": varied.members(x.setting),
                   "base_bytes": decimal(x.base), "bytes_each": decimal(x.each), "error": decimal(x.error), "points": len(x.points)}
                  for x in found.lines],
        "unused": without_effect(found), **({"sets": [s.document() for s in found.sets()]} if found.searches else {}), "runs": found.runs.ran + sum(x.runs.ran for x in found.searches),
        "runs_kept": found.runs.kept + sum(x.runs.kept for x in found.searches)}


def page_of(found: Found, document: Dict[str, Any]) -> Dict[str, Any]:
    """With the pages of the runs beside it. The program is named without its folder, as in their heads."""
    plan = found.runs.plan
    pages = [c.trial.path(".html") if c.trial.text("recording") else "" for c in found.cells]
    return {"command": " ".join([os.path.basename(plan.command[0]), *plan.command[1:]]), "tool": plan.version, "names": [v.name for v in plan.varied.items],
            "pages": [os.path.basename(page) if os.access(page, os.R_OK) else "" for page in pages], "fit": document}
