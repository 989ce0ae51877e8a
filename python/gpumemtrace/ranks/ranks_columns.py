# SPDX-License-Identifier: Apache-2.0
"""The columns of a rank's row for each command, read from the command's JSON for one recording."""
from __future__ import annotations

from typing import Dict, List, NamedTuple

# Kinds of figures, and of texts. GROWTH: bytes with a sign. NUMBER: a number that is a name. CATEGORY: a class's name. PLACE: an object with
# function, file and line. CLASS: the largest of an object with the bytes of each class.
BYTES, GROWTH, COUNT, NUMBER, DECIMAL, SECONDS, FLAG = "bytes", "growth", "count", "number", "decimal", "seconds", "flag"
WORDS, CATEGORY, PLACE, CLASS = "words", "category", "place", "class"
TEXTS = (WORDS, CATEGORY, PLACE, CLASS)


class Column(NamedTuple):
    """key: its name in "totals" and "stray". path: members of the document, and the index or the member of an item ("rows.key=sum.measured");
    "devices.*.ooms" is the sum over all items, "last_ns - first_ns" a difference, a list counts its items; "peak:" is the document of `peak`.
    flags: main (outliers are found by it), sum (a sum over ranks is meaningful), apart (ranks with different values get rows of their own),
    some (shown unless it is 0 for all ranks), quiet (not shown), exact (a difference of a few bytes counts)."""

    key: str
    title: str
    path: str
    kind: str
    flags: str = ""

    def has(self, flag: str) -> bool:
        return flag in self.flags.split()


COLUMNS: Dict[str, List[Column]] = {
    "report": [
        Column("peak_bytes", "peak", "peak:bytes", BYTES, "main sum"),
        Column("peak_reserved_bytes", "reserved", "peak:reserved_bytes", BYTES, "sum"),
        Column("class", "most of it", "peak:categories", CLASS, "apart"),
        Column("at", "at", "peak:text", WORDS),
        Column("phase", "", "peak:phase", WORDS, "apart quiet"),
        Column("ooms", "ran out", "devices.*.ooms", COUNT, "sum apart some"),
        Column("events", "", "events", COUNT, "sum quiet"),
        Column("allocs", "", "allocs", COUNT, "sum quiet"),
        Column("frees", "", "frees", COUNT, "sum quiet"),
        Column("dropped", "dropped", "dropped", COUNT, "sum some"),
        Column("file_bytes", "", "file_bytes", COUNT, "sum quiet"),
    ],
    "peak": [
        Column("bytes", "peak", "bytes", BYTES, "main sum"),
        Column("reserved_bytes", "reserved", "reserved_bytes", BYTES, "sum"),
        Column("class", "most of it", "categories", CLASS, "apart"),
        Column("text", "at", "text", WORDS),
        Column("phase", "", "phase", WORDS, "apart quiet"),
    ],
    "timeline": [
        Column("peak_bytes", "peak", "peak_bytes", BYTES, "main"),
        Column("duration_ns", "lasted", "last_ns - first_ns", SECONDS),
        Column("at_ns", "peak at", "peak_time_ns - first_ns", SECONDS),
        Column("peak_text", "in", "peak_text", WORDS),
    ],
    "live": [
        Column("bytes", "in use", "bytes", BYTES, "main sum"),
        Column("blocks", "blocks", "blocks", COUNT, "sum"),
    ],
    "steps": [
        Column("steps", "steps", "steps", COUNT, "apart"),
        Column("peak_bytes", "peak", "peak.bytes", BYTES, "main"),
        Column("phase", "", "peak.phase", WORDS, "apart quiet"),
        Column("peak_text", "in", "peak.text", WORDS),
    ],
    "modules": [
        Column("bytes", "bytes", "bytes", BYTES, "main sum"),
        Column("outside_bytes", "outside modules", "outside_bytes", BYTES, "sum"),
        Column("class", "class", "class", CATEGORY, "apart"),
        Column("module", "outermost", "modules.0.name", WORDS, "apart"),
    ],
    "account": [
        Column("parameters", "parameters", "shape.parameters.value", COUNT, "apart"),
        Column("shards", "shards", "shape.shards.value", COUNT, "apart"),
        Column("per_parameter", "B each", "rows.key=sum.measured", DECIMAL),
        Column("activations", "activations", "rows.key=total.measured", BYTES, "sum"),
        Column("peak", "peak", "rows.key=peak.measured", BYTES, "main sum"),
        Column("peak_by_formula", "by formula", "rows.key=peak.formula", BYTES),
        Column("optimizer", "optimizer", "optimizer", WORDS, "apart"),
    ],
    "leaks": [
        Column("growth_per_step", "growth a step", "growth_per_step", BYTES, "main sum exact"),
        Column("steps", "steps", "steps", COUNT, "apart"),
        Column("class", "class", "owners.0.class", CATEGORY, "apart"),
        Column("owner", "allocated at", "owners.0", PLACE, "apart"),
    ],
    "info": [
        Column("events", "events", "events", COUNT, "sum"),
        Column("file_bytes", "file", "file_bytes", BYTES, "sum"),
        Column("dropped", "dropped", "dropped", COUNT, "sum some"),
        Column("duration_ns", "lasted", "duration_ns", SECONDS),
        Column("start", "start", "start", WORDS),
        Column("pid", "process", "pid", NUMBER),
        Column("host", "host", "meta.host", WORDS, "apart"),
        Column("ended", "ended", "clean_end", FLAG, "apart"),
    ],
    "export": [
        Column("file_bytes", "length", "file_bytes", BYTES, "sum"),
        Column("file", "file", "file", WORDS, "apart"),
    ],
    "verify": [
        Column("ok", "good", "ok", FLAG, "apart"),
        Column("events", "events", "events", COUNT, "sum"),
        Column("blocks", "blocks", "blocks", COUNT, "sum"),
        Column("damaged_blocks", "damaged", "damaged_blocks", COUNT, "sum apart some"),
        Column("skipped_bytes", "skipped bytes", "skipped_bytes", COUNT, "sum apart some"),
        Column("dropped", "dropped", "dropped", COUNT, "sum apart some"),
        Column("missing_numbers", "missing", "missing_numbers", COUNT, "sum apart some"),
        Column("no_end", "end lost", "no_end", COUNT, "sum apart some"),
        Column("clean_end", "ended", "clean_end", FLAG, "apart"),
    ],
    "diff": [
        Column("peak_old", "old", "peak_old", BYTES, "sum"),
        Column("peak_new", "new", "peak_new", BYTES, "sum"),
        Column("delta", "change", "delta", GROWTH, "main sum"),
        Column("class", "first finding", "findings.0.class", CATEGORY, "apart"),
        Column("owner", "at", "findings.0", PLACE, "apart"),
    ],
}
