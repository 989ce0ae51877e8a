# SPDX-License-Identifier: Apache-2.0
"""The commands that have a row for each recording of a run, and the comparison of two runs (viewer/commands/of_ranks.c hands them over)."""
from __future__ import annotations

import os
import signal
import traceback
from typing import Any, Callable, List, Mapping, Optional, Tuple

from .._answer import CHECK, OK, UNREADABLE, Answer, Sentence
from .._core import load
from .._error import Error
from .ranks_columns import COLUMNS
from .ranks_document import rest_of, row_text, text_of
from .ranks_far import Far, elsewhere
from .ranks_rows import Result, Row, Table, ask, export, in_order
from .ranks_run import File, Run, output_names
from .ranks_text import Text
from .ranks_words import Words, base

FINDINGS = 3  # findings of a comparison that are looked up in all ranks


class Job:
    def __init__(self, request: Mapping[str, Any], answer: Answer) -> None:
        self.request, self.answer = request, answer
        self.command, self.json, self.options = request["what"], bool(request["json"]), request["options"]
        self.run = Run(request["run"])
        words = Words(request["classes"], bool(request["screen"]))
        self.table = Table(self.run.files, self.command, COLUMNS[self.command], words)

    def fill(self, work: Callable[[int], Result], look: Optional[Callable[[int, Any, Result], None]] = None) -> None:
        """All rows. In JSON each is printed as soon as it is there."""
        count = len(self.run.files)
        if self.json:
            self.answer.put("rows", "ranks")
        for i, result in enumerate(in_order(count, work)):
            document, peak = self.table.add(i, result)
            if self.json:
                self.answer.raw("document", row_text(self.table.rows[i], result, document, peak))
            if look:
                look(i, document, result)
            self.answer.doing(f"ranks {i + 1} of {count}")
        self.answer.doing("")
        self.far = Far(self.table)
        self.others = elsewhere(self.table.rows)

    def document(self, **more: Any) -> None:
        self.answer.raw("rest", text_of({**rest_of(self.run, self.table, self.far, self.others), **more}))

    def text(self, pairs: bool) -> None:
        Text(self.run, self.table, self.far, self.answer, pairs).print(self.others)


# ---- a row for each ----


def worst_code(job: Job) -> int:
    """Of all rows. For verify an unreadable recording counts as a failed check."""
    rows = job.table.rows
    if not any(r.fine for r in rows):
        raise Sentence(f"of {len(rows)} recordings none gives an answer; the first: {rows[0].error}", rows[0].code)
    codes = [r.code if r.fine else CHECK if job.command == "verify" else OK for r in rows]
    return max(codes)


def where_next(job: Job) -> None:
    """The rank to look at: the greatest outlier, or the one with the worst exit code."""
    outlier = job.far.furthest()
    row = max(job.table.fine(), key=lambda r: r.code) if outlier is None else job.table.rows[outlier]
    who = "One of them" if outlier is None or not row.file.name else f"Look at {row.file.name}"
    job.answer.line()
    job.answer.line(f"{who}: gpumemtrace {job.command} {row.file.shell}")


def each_rank(job: Job) -> int:
    request, files = job.request, job.run.files
    if request["output"]:
        outputs = output_names(files, request["output"], request["format"])
        job.fill(lambda i: export(request["tool"], files[i].path, outputs[i], job.options))
    else:
        job.fill(lambda i: ask([files[i].path], job.command, job.options, bool(request["with_peak"])))
    if job.json:
        job.document()
    code = worst_code(job)
    if not job.json:
        job.text(False)
        if not request["output"]:
            where_next(job)
    return code


# ---- two runs: ranks are matched by number, and the pair whose memory grew most is shown in full ----


def partner_of(old: List[File], f: File) -> Optional[str]:
    """The recording of the same rank; without ranks, the one with the same file name."""
    return next((g.path for g in old if (g.rank == f.rank if f.rank >= 0 else g.rank < 0 and base(g.path) == base(f.path))), None)


class Pairs(Job):
    def __init__(self, request: Mapping[str, Any], answer: Answer) -> None:
        super().__init__(request, answer)
        self.old = Run(request["old"])
        self.partner = [partner_of(self.old.files, f) for f in self.run.files]
        self.found: List[List[Tuple[Any, ...]]] = [[] for _ in self.run.files]  # the names in the findings of each pair

    def compare(self, i: int) -> Result:
        partner = self.partner[i]
        if partner is None:
            return Result(UNREADABLE, b"", b"", "the old run has no recording of this rank", False)
        return ask([partner, self.run.files[i].path], "diff", self.options, False)

    def look(self, i: int, document: Any, result: Result) -> None:
        findings = document.get("findings", ()) if document else ()
        self.found[i] = [tuple(f.get(name) for name in ("kind", "class", "function", "file", "line")) for f in findings]
        if self.table.rows[i].fine and result.code:
            self.table.rows[i].error = result.error

    def worse(self, row: Row) -> Tuple[bool, int, float]:
        """Failed checks first, then the greatest growth."""
        return row.fine, row.code if row.fine else 0, self.table.figure(row) if row.fine else 0

    def sharing(self, worst: int) -> List[List[int]]:
        """The ranks that share each of the first findings of the worst pair."""
        return [[i for i, row in enumerate(self.table.rows) if row.fine and finding in self.found[i]] for finding in self.found[worst][:FINDINGS]]

    def text_shared(self, worst: int) -> None:
        count = len(self.table.fine())
        for i, of in enumerate(self.sharing(worst) if count > 1 else ()):
            how = f"all {count} ranks have it." if len(of) == count else f"{len(of)} of {count} ranks have it: {self.run.words(of, 80)}."
            self.answer.sentence(f"Finding {i + 1}: {how}")

    def print_text(self, worst: int) -> None:
        if self.request["markdown"]:
            self.answer.line("```")
        self.text(True)
        self.answer.line()
        self.text_shared(worst)
        if self.request["markdown"]:
            self.answer.line("```")
        if len(self.table.fine()) > 1:
            self.answer.title(f"The most growth, or the least shrinking: {self.run.files[worst].title()}")
        self.answer.line()

    def print_document(self, worst: int) -> None:
        row = self.table.rows[worst]
        rank = {"rank": row.file.rank} if row.file.rank >= 0 else {}
        more = {"worst": {**rank, "recording": row.file.path},
                "shared": [{"finding": i + 1, "ranks": len(of)} for i, of in enumerate(self.sharing(worst))]} if row.fine else {}
        self.document(**more)

    def note_gone(self) -> None:
        gone = [i for i, f in enumerate(self.old.files) if partner_of(self.run.files, f) is None]
        if gone:
            self.answer.note(f"the new run has no recording of: {self.old.words(gone, 200)}")

    def perform(self) -> int:
        """The command prints the worst pair, or writes what is written beside its JSON; else the exit code is here."""
        self.note_gone()
        self.fill(self.compare, self.look)
        rows = self.table.rows
        worst = max(range(len(rows)), key=lambda i: self.worse(rows[i]))
        row = rows[worst]
        if self.json:
            self.print_document(worst)
        if not row.fine:
            raise Sentence(f"no rank can be compared; the first: {row.error}", row.code)
        if not self.json:
            self.print_text(worst)
        if not self.json or self.request["besides"]:
            self.answer.put("result", {"old": self.partner[worst], "new": row.file.path})
        elif row.code:
            raise Sentence(f"{row.file.name}: {row.error}", row.code)
        return OK


def perform(request: Mapping[str, Any], answer: Answer) -> int:
    load(request["core"])
    return Pairs(request, answer).perform() if "old" in request else each_rank(Job(request, answer))


def main(request: Mapping[str, Any]) -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing here is half done
    answer = Answer()
    try:
        answer.end(perform(request, answer))
    except Error as error:
        answer.fail(Sentence(error.sentence, error.exit_code))
    except Sentence as sentence:
        answer.fail(sentence)
    except Exception:
        traceback.print_exc()
        os._exit(1)  # the command prints the last line
    os._exit(0)
