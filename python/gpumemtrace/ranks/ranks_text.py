# SPDX-License-Identifier: Apache-2.0
"""A run as text: a row per rank, or per group of similar ranks if there are many; then the outliers, and why they differ."""
from __future__ import annotations

from typing import Collection, Dict, List

from .._answer import Answer, in_units
from .ranks_columns import BYTES, CATEGORY, CLASS, FLAG, PLACE, TEXTS
from .ranks_far import Elsewhere, Far
from .ranks_rows import Table
from .ranks_run import Run, numbers_words
from .ranks_words import before_digits, change, figure, shorten

EACH = 16  # ranks that have a row each
NAMED = 8  # outliers, and ranks on others' devices, that are named
HOSTS = 8  # hosts with a sum
COLUMNS = 16
WIDE = 44  # columns of a text in a row


class Text:
    def __init__(self, run: Run, table: Table, far: Far, answer: Answer, pairs: bool) -> None:
        self.run, self.table, self.far, self.answer, self.pairs = run, table, far, answer, pairs

    # ---- before the rows ----

    def whom(self, of: Collection[int]) -> str:
        """"rank 3", "ranks 0-2, 5", or the names of the recordings."""
        return ("" if self.run.is_named() else "ranks " if len(of) > 1 else "rank ") + self.run.words(of, 200)

    def head(self) -> None:
        """"4 ranks on 2 hosts, python train.py", and omitted files."""
        run, count = self.run, len(self.run.files)
        command = next((f.command for f in run.files if f.command), "") if run.runs == 1 and not run.differ else ""
        noun = "recording" if run.is_named() or run.runs > 1 else "rank"
        hosts = f" on {len(run.hosts())} hosts" if len(run.hosts()) > 1 else ""
        runs = f" of {run.runs} runs" if run.runs > 1 else ""
        self.answer.sentence(f"{count} {noun}{'' if count == 1 else 's'}{runs}{hosts}{'  |  ' if command else ''}{command}")
        if run.note:
            self.answer.sentence(run.note, 0)
        if run.left:
            self.answer.line(f"Not read: {len(run.left)} other file{'' if len(run.left) == 1 else 's'} in the folder")
        self.missing()
        self.parts()
        self.answer.line()

    def missing(self) -> None:
        gone = self.run.missing()
        if gone and all(f.alone for f in self.run.files):
            self.answer.line(f"The other {len(gone)} of {self.run.world} ranks were simulated, not run.")
        elif gone:
            self.answer.sentence(f"Of the {self.run.world} ranks of this run {len(gone)} left no recording here: {numbers_words(gone, 200)}.", 0)

    def parts(self) -> None:
        """For ranks whose program was killed or still runs, or whose file is cut or damaged: their other figures may be too low."""
        of = [i for i, row in enumerate(self.table.rows) if row.part]
        if not of:
            return
        one = len(of) == 1
        which = "The" if not self.pairs else "A" if one else "Some"
        median = "" if self.table.main is None else ", and the median is of the others" if self.far.middle else ", and there is no median"
        self.answer.sentence(f"{which} {'file' if one else 'files'} of {self.whom(of)} {'has' if one else 'have'} no end or "
                             f"{'is' if one else 'are'} damaged (see gpumemtrace verify): figures are those of "
                             f"{'its readable part' if one else 'their readable parts'}{median}.", 0)

    def summary(self) -> None:
        """Partial recordings count too, because what they show was really allocated."""
        table = self.table
        assert table.main is not None
        known = [r for r in table.fine() if r.values[table.main].known]
        if not known:
            return
        column, best = table.columns[table.main], max(known, key=table.figure)
        highest = figure(column.kind, table.figure(best))
        if all(table.figure(r) == table.figure(known[0]) for r in known):
            self.answer.title(f"All: {column.title} {highest}")
        else:
            median = f"; median {figure(column.kind, self.far.median)}" if self.far.middle else ""
            self.answer.title(f"Highest {column.title}: {highest}, {best.file.name}{median}")
        self.answer.line()

    # ---- rows ----

    def is_shown(self, column: int) -> bool:
        c = self.table.columns[column]
        values = [r.values[column] for r in self.table.fine()]
        return not c.has("quiet") and any(v.known and (v.n != 0 or not c.has("some")) for v in values)

    def cell(self, group: List[int], column: int) -> str:
        """A group's figures in one column: one figure, or the least and the most."""
        kind = self.table.columns[column].kind
        values = [v for v in (self.table.rows[i].values[column] for i in group) if v.known]
        if not values:
            return ""
        if kind not in TEXTS:
            least, most = (figure(kind, of(v.n for v in values)) for of in (min, max))
            return most if least == most else f"{least} to {most}"
        text = values[0].words
        for v in values[1:]:
            if kind != CLASS:
                text = shorten(text, v.words)
            elif text != v.words:
                text = before_digits(text)  # the class alone
        return text

    def sums(self, who: str, columns: List[int], host: str = "") -> List[str]:
        of = self.table.columns
        return [who, *(figure(of[c].kind, self.table.sum(c, host)) if of[c].has("sum") else "" for c in columns)]

    def rows(self) -> None:
        """Rows without an answer stand behind the others."""
        run, table = self.run, self.table
        shown = [c for c in range(len(table.columns)) if self.is_shown(c)][:COLUMNS - 1]
        groups = [[i] for i in range(len(table.rows))] if len(table.rows) <= EACH else self.far.groups
        rows = [[run.words(g, 60), *(table.words.within(self.cell(g, c), WIDE) for c in shown)] for g in groups if table.rows[g[0]].fine]
        if len(table.rows) > 1 and any(c.has("sum") and not c.has("quiet") for c in table.columns):
            hosts = run.hosts() if 1 < len(run.hosts()) <= HOSTS else []
            rows += [*(self.sums(f"on {host}", shown, host) for host in hosts), self.sums("sum", shown)]
        columns = [("recording" if run.is_named() else "rank", 2, -1)]
        columns += [(table.columns[c].title, 2, -1 if table.columns[c].kind in (FLAG, *TEXTS) else 0) for c in shown]
        self.answer.table(columns, rows)
        for g in self.far.groups:
            if not table.rows[g[0]].fine:
                self.answer.line(f"  {run.words(g, 80)}  {table.rows[g[0]].error}")

    # ---- behind the rows ----

    def elsewhere(self, others: List[Elsewhere]) -> None:
        if others:
            self.answer.line()
            self.answer.title("Memory on another rank's device")
        for e in others[:NAMED]:
            context = "a context" + (f" of about {in_units(e.context)}" if e.context else "")
            made = f" ({self.table.words.place(e.device.place)})" if e.device.place.function else ""
            what, behind = (f"{in_units(e.device.reserved)} reserved", f", and {context}") if e.device.reserved else (context, "")
            self.answer.sentence(f"{e.row.file.name}: {what} on device {e.device.number}, where {e.of.file.name} works{made}{behind}. "
                                 f"All ranks together have up to {in_units(e.together)} there", 4)
        if len(others) > NAMED:
            self.answer.line(f"  ... and {len(others) - NAMED} more (--json names all)")

    def outliers(self) -> None:
        far = self.far
        if far.outliers:
            self.answer.line()
            self.answer.title(f"{len(far.outliers)} of {len(far.compared)} {'is' if len(far.outliers) == 1 else 'are'} far from the median")
        alike = [g for g in far.groups if g[0] in far.is_outlier]
        for g in alike[:NAMED]:
            self.answer.sentence(self.outlier_words(g), 4)
        left = sum(map(len, alike[NAMED:]))
        if left:
            self.answer.line(f"  ... and {left} more ranks (--json names all)")

    def outlier_words(self, group: List[int]) -> str:
        table, why, row = self.table, self.far.why(group[0]), self.table.rows[group[0]]
        assert table.main is not None
        text = (f"{self.whom(group)}: {figure(table.columns[table.main].kind, table.figure(row))}, {in_units(int(abs(why.more)))} "
                f"{'less' if why.more < 0 else 'more'} than the median")
        if why.class_:
            text += f"; {table.words.classes[why.class_]} {change(why.class_more)}"
        before: Dict[str, str] = {} if table.has_classes else {CATEGORY: "; ", PLACE: " of "}
        text += "".join(before[c.kind] + v.words for c, v in zip(table.columns, row.values) if c.kind in before and v.known)
        return text + (f", most of it {table.words.place(why.place)} ({change(why.place_more)})" if why.place else "")

    def print(self, others: List[Elsewhere]) -> None:
        self.head()
        if self.table.main is not None and self.table.columns[self.table.main].kind == BYTES:
            self.summary()
        self.rows()
        self.elsewhere(others)
        if self.far.middle:
            self.outliers()
