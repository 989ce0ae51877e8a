# SPDX-License-Identifier: Apache-2.0
"""Outlier ranks, and the class and line of code that differ most; ranks that are alike; memory on another rank's device."""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional

from .ranks_columns import CLASS
from .ranks_rows import Device, Row, Table, Value
from .ranks_words import Place, before_digits

# A rank is an outlier if it is further from the median than both (viewer/page/page_room.c has the same for a page).
OUTLIER_PERCENT, OUTLIER_BYTES = 2, 2 << 20
ALIKE = 10  # outliers are alike if they differ by less than 1/ALIKE


class Why(NamedTuple):
    """more: than the median; negative: less. class_: the class that differs most in the same direction, and by how much; place: of that class."""

    more: float
    class_: str
    class_more: int
    place: Optional[Place]
    place_more: int


def is_further(a: float, b: float, least: float) -> bool:
    return abs(a - b) > max(least, abs(b) * OUTLIER_PERCENT / 100)


def same_value(a: Value, b: Value, kind: str) -> bool:
    """Of classes only the names are compared, because the figures behind them differ from rank to rank."""
    return before_digits(a.words) == before_digits(b.words) if kind == CLASS else a == b


class Far:
    def __init__(self, table: Table) -> None:
        self.table = table
        self.compared = [r for r in table.rows if self.is_compared(r)]
        self.middle: Optional[Row] = None
        self.median = 0.0
        self.known: Dict[int, Why] = {}
        if self.compared:
            # For an even number of rows the lower of the two in the middle, so that it is the figure of an existing rank, as in the view
            # stray_ranks (viewer/commands/views.sql).
            self.middle = sorted(self.compared, key=table.figure)[(len(self.compared) - 1) // 2]
            self.median = table.figure(self.middle)
        self.outliers = [i for i, r in enumerate(table.rows) if self.is_compared(r) and self.is_apart(table.figure(r), self.median)]
        self.groups = self.find_groups()

    def is_compared(self, row: Row) -> bool:
        """A partial recording is left out, because it shows only part of what its rank held."""
        return self.table.main is not None and row.fine and not row.part and row.values[self.table.main].known

    def is_apart(self, a: float, b: float) -> bool:
        assert self.table.main is not None
        return is_further(a, b, 0 if self.table.columns[self.table.main].has("exact") else OUTLIER_BYTES)

    def find_groups(self) -> List[List[int]]:
        """A row joins the group of the first row that is like it."""
        groups: List[List[int]] = []
        self.is_outlier = set(self.outliers)
        for i in range(len(self.table.rows)):
            group = next((g for g in groups if self.same_group(g[0], i)), None)
            if group:
                group.append(i)
            else:
                groups.append([i])
        return groups

    def same_group(self, a: int, b: int) -> bool:
        t = self.table
        x, y = t.rows[a], t.rows[b]
        if not x.fine or not y.fine:
            return not x.fine and not y.fine and x.error == y.error
        if t.main is not None and self.is_apart(t.figure(y), t.figure(x)):
            return False
        return all(same_value(v, w, c.kind) for c, v, w in zip(t.columns, x.values, y.values) if c.has("apart")) and self.same_cause(a, b)

    def same_cause(self, a: int, b: int) -> bool:
        """Whether two outliers have the same cause."""
        if a not in self.is_outlier and b not in self.is_outlier:
            return True
        if a not in self.is_outlier or b not in self.is_outlier:
            return False
        x, y = self.why(a), self.why(b)
        return x.class_ == y.class_ and x.place == y.place and abs(x.more - y.more) <= abs(x.more) / ALIKE

    def furthest(self) -> Optional[int]:
        return max(self.outliers, key=lambda i: abs(self.table.figure(self.table.rows[i]) - self.median), default=None)

    def why(self, i: int) -> Why:
        if i not in self.known:
            self.known[i] = self.find_why(self.table.rows[i])
        return self.known[i]

    def find_why(self, row: Row) -> Why:
        middle = self.middle
        assert middle is not None
        more = self.table.figure(row) - self.median
        sign = -1 if more < 0 else 1
        classes = {c: row.classes.get(c, 0) - middle.classes.get(c, 0) for c in self.table.words.classes} if self.table.has_classes else {}
        most = max(classes, key=lambda c: classes[c] * sign, default="")
        if not most or classes[most] * sign <= 0:
            return Why(more, "", 0, None, 0)
        lines = {at: row.lines.get(at, 0) - middle.lines.get(at, 0) for at in (*row.lines, *middle.lines) if at[0] == most}
        line = max(lines, key=lambda at: lines[at] * sign, default=None)
        if line is None or lines[line] * sign <= 0:
            return Why(more, most, classes[most], None, 0)
        return Why(more, most, classes[most], line[1], lines[line])


class Elsewhere(NamedTuple):
    """Memory of a rank, or its context alone, on the device on which another rank of its host works. context: bytes of a context, about; 0: it is
    not known. together: the most that each rank had reserved on that device, with their contexts, added up."""

    row: Row
    of: Row
    device: Device
    context: int
    together: int


def who_works_on(rows: List[Row], row: Row, device: Device) -> Optional[Row]:
    """UUIDs of simulated devices are the same on every host."""
    for other in rows:
        home = other.home()
        if other is not row and home and device.uuid and home.uuid == device.uuid and other.file.host == row.file.host:
            return other
    return None


def elsewhere(rows: List[Row]) -> List[Elsewhere]:
    homes = [home for home in (row.home() for row in rows) if home]
    # The least that a rank has where it works: no other rank is there, and contexts are alike.
    context = min((home.context for home in homes if home.context), default=0)
    found = []
    for row in rows:
        own = row.home()
        for device in row.devices:
            of = who_works_on(rows, row, device) if own and device.uuid != own.uuid else None
            if of:
                together = sum(d.reserved + context for r in rows for d in r.devices if d.uuid == device.uuid and r.file.host == row.file.host)
                found.append(Elsewhere(row, of, device, context, together))
    return found
