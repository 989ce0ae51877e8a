# SPDX-License-Identifier: Apache-2.0
"""The answers of a run's ranks as JSON: `ranks` in viewer/answers/documents.def."""
from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterator, List

from .ranks_far import Elsewhere, Far
from .ranks_rows import Result, Row, Table
from .ranks_run import Run
from .ranks_words import Place

LEFT_MOST = 32  # names of other files
# Not shown by themselves, or no character at all: as the command escapes them (viewer/base/emit_json.c).
ESCAPED = re.compile("[\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]")


def text_of(value: Any) -> str:
    return ESCAPED.sub(lambda found: json.dumps(found[0])[1:-1], json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def row_text(row: Row, result: Result, document: Any, peak: Any) -> str:
    """The members of the command's document are as the library wrote them."""
    before: Dict[str, Any] = row.file.who()
    if document is None or "file" not in document:
        before["file"] = row.file.path
    before["part"] = row.part
    behind: Dict[str, Any] = {} if row.fine else {"error": row.error}
    if peak is not None:
        behind.update(step=peak.get("step") or 0, phase=peak.get("phase") or "", text=peak.get("text") or "")
    first = result.document.partition(b"\n")[0].decode("utf-8", "surrogateescape").strip()
    return "{" + ",".join(part for part in (text_of(before)[1:-1], first[1:-1], text_of(behind)[1:-1]) if part) + "}"


def sums(table: Table, host: str = "") -> Dict[str, Any]:
    return {"ranks": len(table.fine(host)), **{c.key: int(table.sum(i, host)) for i, c in enumerate(table.columns) if c.has("sum")}}


def main_figure(table: Table, row: Row) -> Dict[str, int]:
    assert table.main is not None
    return {table.columns[table.main].key: int(table.figure(row))}


def owner(p: Place) -> Dict[str, Any]:
    return {"function": p.function, "file": p.file, "line": p.line}


def outlier_rows(table: Table, far: Far) -> Iterator[Dict[str, Any]]:
    for i in far.outliers:
        row, why = table.rows[i], far.why(i)
        found = {**row.file.who(), "recording": row.file.path, **main_figure(table, row), "median": int(far.median), "from_median": int(why.more)}
        if why.class_:
            found.update({"class": why.class_, "class_delta": why.class_more})
        if why.place:
            found.update(owner(why.place), line_delta=why.place_more)
        yield found


def rest_of(run: Run, table: Table, far: Far, others: List[Elsewhere]) -> Dict[str, Any]:
    """What stands behind the rows."""
    rest: Dict[str, Any] = {"totals": {**sums(table), "hosts": [{"host": host, **sums(table, host)} for host in run.hosts()]}}
    if far.middle:
        rest["median"] = {**far.middle.file.who(), **main_figure(table, far.middle)}
    rest["stray"] = list(outlier_rows(table, far))
    rest["elsewhere"] = [{**e.row.file.who(), "recording": e.row.file.path, "device": e.device.number, "of": e.of.file.path, "device_bytes": e.together,
                          "bytes": e.device.reserved, "context_bytes": e.context, **owner(e.device.place)} for e in others]
    rest.update(missing=run.missing(), other_files=len(run.left), left_alone=run.left[:LEFT_MOST])
    if run.note:
        rest["note"] = run.note
    return rest
