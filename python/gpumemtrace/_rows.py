# SPDX-License-Identifier: Apache-2.0
"""Objects of the tool's JSON as Python's, and lists of them as tables."""

from __future__ import annotations

import re
import sys
from typing import Any, ClassVar, Dict, Generic, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union, overload

from . import _core

# Name of an attribute -> what it is in member_types.def, and the class of what it holds.
Kinds = Mapping[str, Tuple[str, Optional[Type["Row"]]]]
R = TypeVar("R", bound="Row")

_SIGNED = ("SIGNED", "CHANGE", "WALL")
_ARROW = {"DECIMAL": "g", "FLAG": "b", "TEXT": "u", "RAW": "u", "CLASS": "u"}


class Row:
    """An object of the tool's JSON. Members that this version of the package does not know are left out."""

    _types: ClassVar[str] = ""  # of each member, in order, as in viewer/answers/member_types.def
    _kinds: ClassVar[Kinds] = {}

    def __init_subclass__(cls) -> None:
        if cls._types:
            members = [(name, hint) for name, hint in cls.__annotations__.items() if name != "_types"]
            cls._kinds = {name: (kind, _part_in(cls, hint)) for (name, hint), kind in zip(members, cls._types.split())}

    @classmethod
    def _of(cls: Type[R], document: Mapping[str, Any]) -> R:
        values = {}
        for name, (kind, part) in cls._kinds.items():
            value = document.get(name[:-1] if name.endswith("_") else name)
            if value is not None and part is not None:
                value = _part(kind, part, value)
            elif isinstance(value, list):
                value = tuple(value)
            values[name] = value
        return cls(**values)


def _part_in(cls: type, hint: str) -> Optional[Type[Row]]:
    """The class that the type of a member names: it stands above in the same file."""
    there = (vars(sys.modules[cls.__module__]).get(word) for word in re.findall(r"\w+", hint))
    return next((found for found in there if isinstance(found, type) and issubclass(found, Row)), None)


def _part(kind: str, part: Type[Row], value: Any) -> Any:
    if kind == "LIST":
        return Table(part, [part._of(row) for row in value])
    if kind == "MAP":
        first = next(iter(part._kinds))
        return {name: part._of({first: name, **row}) for name, row in value.items()}
    return part._of(value)


class Table(Generic[R]):
    """Rows, in order; a table for whatever takes Arrow's PyCapsule interface: ``pandas.DataFrame.from_arrow(t)``,
    ``polars.DataFrame(t)``, ``pyarrow.table(t)``, and by its name in DuckDB's SQL.

    Numbers are 64 bits wide, a class's bytes a column of their own (``categories_activations``); lists within rows
    are left out.
    """

    def __init__(self, row: Type[R], rows: Sequence[R]) -> None:
        self._row = row
        self._rows = rows

    @overload
    def __getitem__(self, index: int) -> R: ...

    @overload
    def __getitem__(self, index: slice) -> "Table[R]": ...

    def __getitem__(self, index: Union[int, slice]) -> Union[R, "Table[R]"]:
        return Table(self._row, self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[R]:
        return iter(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self._row is other._row and list(self) == list(other)

    def __repr__(self) -> str:
        return f"<{len(self)} rows of {self._row.__name__}>"

    def _columns(self) -> List[_core.Column]:
        return _flat(self._row, list(self._rows), "")

    def __arrow_c_schema__(self) -> object:
        return _core.schema_capsule(_core.columns_of([_core.Column(c.name, c.format, []) for c in self._columns()], 0))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _core.stream_capsule(_core.columns_of(self._columns(), len(self)))


def _flat(row: Type[Row], rows: Sequence[Optional[Row]], prefix: str) -> List[_core.Column]:
    columns: List[_core.Column] = []
    for name, (kind, part) in row._kinds.items():
        values = [None if r is None else getattr(r, name) for r in rows]
        title = prefix + name.rstrip("_")
        if kind == "PART" and part is not None:
            columns += _flat(part, values, title + "_")
        elif kind == "CLASSES":
            columns += _by_class(values, title)
        elif kind not in ("LIST", "MAP", "WORDS", "FACTS"):
            columns.append(_core.Column(title, _ARROW.get(kind, "l" if kind in _SIGNED else "L"), values))
    return columns


def _by_class(values: Sequence[Optional[Mapping[str, int]]], title: str) -> List[_core.Column]:
    names: Dict[str, None] = {}
    for value in values:
        names.update(dict.fromkeys(value or ()))
    return [_core.Column(f"{title}_{n}", "L", [None if v is None else v.get(n, 0) for v in values]) for n in names]
