# SPDX-License-Identifier: Apache-2.0
"""The rows that a recording has in the tables of a lake (viewer/commands/lake_tables.def), made of the tool's documents about it (docs/json.md)."""
from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .._core import Handle, ask, schema_capsule, stream_capsule, table_of
from .._error import Error

USAGE = 2  # the exit code of a question about devices, if no memory was used
Row = Dict[str, Any]
OWNER = ("function", "file", "line", "module")
PACKAGES = "/site-packages/"
LEAST, MOST = -1 << 63, (1 << 63) - 1  # of a column of numbers
TIMES = -62135596800 * 10**6, 253402300799 * 10**6  # microseconds, of the years 1 to 9999

# Options with such a part name a run ("--run-name exp-17", "output_dir=out/3"), unless they are about something else.
NAMING = set("run exp experiment output out outdir log logs logdir logging save seed tag tags note notes wandb mlflow job trial session comment results".split())
ABOUT = set("model data dataset config tokenizer optimizer steps step every interval freq epochs".split())


def names_a_run(word: str) -> bool:
    """An option of the command: --run-name, run.dir=x."""
    name = word.lstrip("-")
    dashes, option = len(word) - len(name), re.split("[= ]", name)[0]
    parts = set(re.split("[^A-Za-z0-9]", option.lower()))
    if not dashes and option == word or dashes > 2 or parts & ABOUT:
        return False
    return option.lower() in ("name", "id", "o") or bool(parts & NAMING)


def program_of(command: str) -> str:
    """The command without what names one run of it, so that runs can be compared."""
    kept, option = [], False  # the word before names a run: this one may be its value
    for word in command.split(" "):
        value = option and not word.startswith("-")
        option = not value and names_a_run(word)
        if not value and not option:
            kept.append(word)
        option = option and "=" not in word
    return " ".join(kept).rstrip(" ")


def label_of(labels: str, name: str) -> Optional[str]:
    """The first value of that name in "model=llama-8b,batch=16"."""
    pairs = (pair.lstrip(" ").partition("=") for pair in labels.split(","))
    return next((value for key, equals, value in pairs if equals and key == name), None)


def number(text: str) -> int:
    found = re.match(r"\s*[+-]?\d+", text)
    return int(found[0]) if found else 0


def only(names: Sequence[str], row: Mapping[str, Any]) -> Row:
    return {name: row.get(name) for name in names}


def relative(path: str, root: str) -> str:
    """Without its private part: checkouts of several people have the same paths."""
    if PACKAGES in path:
        return path.partition(PACKAGES)[2]
    return path[len(root) + 1:] if root and path.startswith(root + "/") and len(path) > len(root) + 1 else path


class Recording:
    """What its documents say: of the device with the highest peak, unless another is named."""

    def __init__(self, path: bytes) -> None:
        self.path, self.handle = os.fsdecode(path), Handle(os.fsdecode(path))
        self.info: Dict[str, Any] = self.ask("info")
        self.root: str = self.info["meta"].get("git.root", "")

    def ask(self, question: str, *arguments: str) -> Any:
        return json.loads(ask([self.handle], question, *arguments))

    def look(self) -> None:
        try:
            self.peak = self.ask("peak")
        except Error as error:
            if error.exit_code != USAGE:
                raise
            self.peak = {"device": None, "devices": []}
        self.used = [d for d in self.peak["devices"] if d["peak_bytes"] or d["refusals"]]
        self.main: Row = next((d for d in self.peak["devices"] if d["device"] == self.peak["device"]), {})
        self.refusals = sum(d["refusals"] for d in self.used)
        self.oom = self.ask("oom") if self.refusals else {}
        if self.main:
            device = str(self.peak["device"])
            self.steps, self.leaks = self.ask("steps"), self.ask("leaks", "--device", device)

    def small_tables(self, version: str) -> Dict[str, List[Row]]:
        self.look()
        tables = {"ranks": [self.ranks_row(version)], "devices": self.used, "classes": self.class_rows(),
                  "refusals": self.refusal_rows(), "lines": [], "steps": [], "growth": []}
        if self.main:
            tables["lines"], tables["growth"] = self.line_rows(), self.growth_rows()
            tables["steps"] = [row for row in self.steps["rows"] if row["phase"] == "step"]
        return tables

    # ---- the table of recordings

    def ranks_row(self, version: str) -> Row:
        info, run = self.info, self.info["run"]
        labels = run.get("labels", "")
        row = {**run, "recording": self.path, "duration_ns": info["duration_ns"], "command": info["command"], "program": program_of(info["command"]),
               "model": label_of(labels, "model"), "batch": label_of(labels, "batch"), "end_state": self.end_state(), "refusals": self.refusals,
               **only(("events", "dropped", "truncated"), info), "damaged": bool(info["damaged_blocks"] or info["skipped_bytes"]),
               "recording_bytes": info["file_bytes"], "tool": version, "devices": len(self.used)}
        row.update({name: number(run[name]) for name in ("pid", "world") if name in run})
        if "started_unix_ns" in info:
            row["started"] = info["started_unix_ns"] // 1000
        if self.main:
            row.update(self.peak_cells())
        return row

    def end_state(self) -> str:
        if self.oom and not self.oom["went_on"]:
            return "out_of_memory"
        return "ended" if any(kind["kind"] == "end" for kind in self.info["kinds"]) else "unknown"

    def peak_cells(self) -> Row:
        peak, steps, leaks = self.peak, self.steps, self.leaks
        row = only(("device", "card", "simulated", "total_bytes", "peak_reserved_bytes", "used_bytes", "end_bytes", "allocs", "frees", "retries"), self.main)
        if leaks["from_step"] != leaks["to_step"]:
            row["growth_bytes"] = leaks["growth_per_step"]
        return {**row, "peak_bytes": self.main["peak_bytes"], "peak_time_ns": peak["time_ns"], "peak_step": peak["step"],
                "peak_phase": peak["phase"], "peak_at": peak["text"], "reserved_at_peak_bytes": peak["reserved_bytes"],
                "largest_hole_bytes": peak["largest_hole"], "steps": steps["steps"], "step_basis": steps["basis"]}

    # ---- the others

    def class_rows(self) -> List[Row]:
        rows: List[Row] = []
        for used in self.used:
            device = used["device"]
            peak = self.peak if device == self.peak["device"] else self.ask("peak", "--device", str(device))
            for name, size in peak["categories"].items():
                rows.append({"device": device, "class": name, "bytes": size, "blocks": sum(line["blocks"] for line in peak["lines"] if line["class"] == name)})
        return rows

    def line_rows(self) -> List[Row]:
        sums: Dict[Tuple[Any, ...], List[int]] = {}
        for block in self.ask("live", "--at", "peak", "--device", str(self.peak["device"]))["blocks"]:
            of = sums.setdefault((block["category"], *(block[name] for name in OWNER)), [0, 0])
            of[0] += block["size"]
            of[1] += 1
        classes = list(self.peak["categories"])
        order = sorted(sums, key=lambda key: (-sums[key][0], classes.index(key[0]) if key[0] in classes else -1, *key[1:]))
        return [{**dict(zip(("class", *OWNER), key)), "bytes": sums[key][0], "blocks": sums[key][1]} for key in order]

    def growth_rows(self) -> List[Row]:
        return [{**owner, "from_step": self.leaks["from_step"], "to_step": self.leaks["to_step"]} for owner in self.leaks["owners"]]

    def refusal_rows(self) -> List[Row]:
        rows = [dict(row) for row in self.oom.get("refusals", ())]
        for row in rows:
            row["time"] = row["unix_ns"] // 1000 if "unix_ns" in row else None
            if row["nth"] == self.oom["nth"]:
                row.update(only(("cause", "text", "asked_bytes", "cached_bytes"), self.oom), largest_hole_bytes=self.oom["largest_hole"])
                row["free_bytes"] = self.oom["free_bytes"] if self.oom["free_known"] else None
                for remedy in self.oom["remedies"][:1]:
                    row.update(remedy=remedy["what"], remedy_bytes=None if remedy["at_most"] else remedy["saves_bytes"])
        return rows


# ---- as CSV


def within(value: int, kind: str) -> Optional[int]:
    """What a column of that type can have: the numbers of a recording have 64 bits without a sign, as of cudaMalloc(&p, -20), and a clock may
    stand anywhere. A number beyond the column's is its largest or least, a time outside of the years 1 to 9999 is null."""
    if kind == "timestamp":
        return value if TIMES[0] <= value <= TIMES[1] else None
    return min(max(value, LEAST), MOST)


def cell(name: str, value: Any, root: str, kind: str = "") -> str:
    """A text without characters is null, and so are a line and a device's memory of 0."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = within(int(value), kind)
    if value is None or value == "" or (name in ("line", "total_bytes") and not value):
        return ""
    if isinstance(value, str):
        return '"' + (relative(value, root) if name == "file" else value).replace('"', '""') + '"'
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_csv(nth: int, columns: Mapping[str, str], rows: Sequence[Row], root: str) -> bytes:
    """columns: their types by name."""
    lines = [",".join([str(nth), *(cell(name, row.get(name), root, kind) for name, kind in columns.items())]) for row in rows]
    return "".join(line + "\n" for line in lines).encode("utf-8", "replace")


# ---- large tables


class Stream:
    """A table that DuckDB reads while it is made."""

    def __init__(self, recording: Recording, table: str, columns: Sequence[str]) -> None:
        self.fill = table_of(recording.handle, table, ",".join(columns))

    def __arrow_c_schema__(self) -> object:
        return schema_capsule(self.fill)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return stream_capsule(self.fill)


def large_query(nth: int, types: Mapping[str, str], root: str) -> str:
    """Of the stream, with cells as in the other tables."""
    def of(name: str, kind: str) -> str:
        text = f'"{name}"'
        if name == "file":
            start = "'" + root.replace("'", "''") + "/'"
            text = (f"case when contains({text}, '{PACKAGES}') then substr({text}, position('{PACKAGES}' in {text}) + {len(PACKAGES)}) "
                    + (f"when starts_with({text}, {start}) then coalesce(nullif(substr({text}, {len(root) + 2}), ''), {text}) " if root else "")
                    + f"else {text} end")
        if kind == "varchar":
            return f'nullif({text}, \'\') as "{name}"'
        if kind == "bigint":
            return f'coalesce(try_cast({text} as bigint), case when {text} > 0 then {MOST} when {text} < 0 then {LEAST} end) as "{name}"'
        return f'try_cast({text} as {kind}) as "{name}"'
    return f"select {nth}::bigint as nth_, {', '.join(of(name, kind) for name, kind in types.items())} from stream_"
