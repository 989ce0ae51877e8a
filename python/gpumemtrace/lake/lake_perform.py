# SPDX-License-Identifier: Apache-2.0
"""What `gpumemtrace collect`, `compact`, `sql`, `regressions` and `dashboard` hand over."""
from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from typing import Any, Callable, Dict, List, Mapping, Optional

from .._core import load
from .._error import Error
from .._answer import UNREADABLE, USAGE, Answer, Sentence
from .lake_ending import Ended, end_by_signals, words
from .lake_collect import Job, Outcome, collect
from .lake_duckdb import LARGE, Schema, connect, dashboard, exit_code_of, query
from .lake_folders import writing
from .lake_places import Known, place_all
from .lake_regressions import regressions
from .lake_store import Store
from .lake_table import FORMS, Columns, Form

READY = ("", "Where next: gpumemtrace sql \"from peak_by_commit\" {lake}   |   gpumemtrace dashboard {lake} -o lake.html")


class Request:
    def __init__(self, request: Mapping[str, Any]) -> None:
        self.options, self.tool, self.version, self.what = request, request["tool"], request["version"], request["what"]
        self.lake, self.query, self.files = request.get("lake", ""), request.get("query", ""), request.get("files", [])
        for text in (self.lake, self.query, request.get("project", ""), request.get("against", ""), request.get("since", "")):
            if any("\udc80" <= c <= "\udcff" for c in text):
                shown = os.fsencode(text).decode("utf-8", "backslashreplace")
                raise Sentence(f"{shown} is no UTF-8, and DuckDB takes nothing else", USAGE)
        self.paths = [os.fsencode(file["path"]) for file in self.files]

    def form(self, answer: Answer) -> Callable[[Columns], Form]:
        return lambda columns: FORMS[self.options["form"]](answer, columns, int(self.options["screen"]))

    def job(self, schema: Schema, answer: Answer, *of: Any) -> Job:
        load(self.options["core"])
        return Job(schema, self.paths, self.version, answer.doing, *of)


def note_of(outcome: Outcome, path: str, alone: bool) -> Optional[str]:
    if outcome.less:
        return f"{path}: the lake has a recording of this process with more in it, and keeps that one"
    if outcome.error is None or alone:
        return None
    return f"{outcome.error}: skipped" if outcome.error.startswith(path + ":") else f"{path}: {outcome.error}: skipped"


def row_of(request: Request, outcome: Outcome) -> Dict[str, Any]:
    place = outcome.source.place
    row = {"file": os.fsdecode(request.paths[outcome.file]), "project": place.project, "day": place.day, "run": place.run, "rank": place.rank,
           "peak_bytes": outcome.peak, "kept_earlier": outcome.less, "error": outcome.error}
    return {name: value for name, value in row.items() if value is not None}


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def collect_into_lake(request: Request, schema: Schema, answer: Answer) -> int:
    """The exit code. A row for each process: which of the files it is from, its place, and what came of it."""
    tables = [t for t in schema.tables if t not in LARGE] + (["allocations"] if request.options["large"] else [])
    rows: List[Dict[str, Any]] = []
    with writing(request.lake, answer.note) as scratch:
        job = request.job(schema, answer, request.lake, scratch, tables)
        job.had = job.store.begin()
        sources = place_all(request.files, Known(had.place for had in job.had.values()), request.options["project"])
        for outcome in collect(job, sources):
            note = note_of(outcome, os.fsdecode(request.paths[outcome.file]), len(sources) == 1)
            if note:
                answer.note(note)
            rows.append(row_of(request, outcome))
        job.store.compact(False)
    skipped = [row["error"] for row in rows if "error" in row]
    kept = len(rows) - len(skipped)
    answer.document({"lake": request.lake, "collected": kept, "skipped": len(skipped), "recordings": rows})
    if not kept:
        raise Sentence(skipped[0] if len(skipped) == 1 else f"none of {len(skipped)} recordings can be read")
    runs = len({(row["project"], row["run"]) for row in rows if "error" not in row})
    answer.line(f"{request.lake}: {count(kept, 'recording')} of {count(runs, 'run')} collected")
    for line in READY:
        answer.line(line.format(lake=shlex.quote(request.lake)))
    return UNREADABLE if skipped else 0


def compact(request: Request, schema: Schema, answer: Answer) -> int:
    if "://" in request.lake:
        raise Sentence(f"{request.lake}: compact works in folders of this machine; copy the lake there afterwards (aws s3 sync --delete)", USAGE)
    with writing(request.lake, answer.note) as scratch:
        store = Store(connect(), schema, request.lake, scratch, request.version, "zstd")
        before = store.count()
        store.begin()
        store.compact(True)
        after = store.count()
    answer.document({"lake": request.lake, "files_before": before, "files": after})
    answer.line(f"{request.lake}: {count(after, 'file')}, {f'from {before:,}' if before != after else 'as before'}")
    return 0


def temporary_lake(request: Request, schema: Schema, answer: Answer, lake: str) -> None:
    tables = schema.wanted_tables(request.query)
    columns = {t: schema.wanted_columns(request.query, t) for t in LARGE}
    scratch = f"{lake}/.new"
    os.mkdir(scratch)
    sources = place_all(request.files, Known(), "")
    job = request.job(schema, answer, lake, scratch, tables, columns, "uncompressed")
    failed = [o for o in collect(job, sources) if o.error is not None]
    if len(sources) == 1 and failed:
        raise Sentence(failed[0].error or "")
    for one in failed:
        answer.note(f"{os.fsdecode(request.paths[one.file])}: left out: {one.error}")
    if len(failed) == len(sources):
        raise Sentence(f"none of {len(failed)} recordings can be read")


def ask_recordings(request: Request, schema: Schema, answer: Answer) -> None:
    """A lake for one query: the tables that it names, in a folder that goes afterwards."""
    folder = os.environ.get("TMPDIR") or "/tmp"
    try:
        lake = tempfile.mkdtemp(prefix="gpumemtrace-sql-", dir=folder)
    except OSError as error:
        raise Sentence(f"{folder}/gpumemtrace-sql-XXXXXX: no folder can be made there: {error.strerror}") from None
    try:
        temporary_lake(request, schema, answer, lake)
        query(schema, lake, request.query, request.form(answer), parts=True)
    finally:
        shutil.rmtree(lake, ignore_errors=True)


def perform(request: Request, answer: Answer) -> int:
    schema = Schema(request.tool)
    if request.what == "collect":
        return collect_into_lake(request, schema, answer)
    if request.what == "compact":
        return compact(request, schema, answer)
    if request.what == "regressions":
        return regressions(request.tool, schema, request.lake, request.options, answer)
    if request.what == "dashboard":
        dashboard(schema, request.lake, request.options["output"], answer)
    elif request.lake:
        query(schema, request.lake, request.query, request.form(answer))
    else:
        ask_recordings(request, schema, answer)
    return 0


def main(request: Mapping[str, Any]) -> None:
    end_by_signals()
    answer = Answer()
    try:
        asked = Request(request)
        code = perform(asked, answer)
        if asked.what != "query":  # whose form has the end
            answer.end(code)
    except Ended:
        os._exit(1)  # the command ends by the signal
    except Error as error:
        answer.fail(Sentence(error.sentence, error.exit_code))
    except Sentence as sentence:
        answer.fail(sentence)
    except Exception as error:
        answer.fail(Sentence(f"DuckDB: {words(error)}", exit_code_of(error)))
