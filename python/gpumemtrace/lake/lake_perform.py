# SPDX-License-Identifier: Apache-2.0
"""What `gpumemtrace collect`, `sql` and `dashboard` hand over."""
from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any, Mapping, Optional, Sequence

from .lake_answer import USAGE, Answer, Ended, Sentence, end_by_signals, words
from .lake_collect import Job, Outcome, collect
from .lake_duckdb import LARGE, Schema, dashboard, exit_code_of, query
from .lake_folders import writing
from .lake_places import Known, place_all

COLUMNS = [("file", "BIGINT"), ("project", "VARCHAR"), ("day", "VARCHAR"), ("run", "VARCHAR"), ("rank", "BIGINT"), ("peak_bytes", "BIGINT"),
           ("kept_earlier", "BOOLEAN"), ("error", "VARCHAR")]


class Request:
    def __init__(self, request: Mapping[str, Any], strings: Sequence[bytes]) -> None:
        self.tool, self.lake, self.text = map(os.fsdecode, strings[:3])
        for text in (self.lake, self.text):
            if any("\udc80" <= c <= "\udcff" for c in text):
                shown = os.fsencode(text).decode("utf-8", "backslashreplace")
                raise Sentence(f"{shown} is no UTF-8, and DuckDB takes nothing else", USAGE)
        self.paths, self.files = strings[3:], request["files"]
        self.version, self.what, self.large, self.has_lake = request["version"], request["what"], request["large"], request["has_lake"]


def note_of(outcome: Outcome, path: str, alone: bool) -> Optional[str]:
    if outcome.less:
        return f"{path}: the lake has a recording of this process with more in it, and keeps that one"
    if outcome.error is None or alone:
        return None
    return f"{outcome.error}: skipped" if outcome.error.startswith(path + ":") else f"{path}: {outcome.error}: skipped"


def collect_into_lake(request: Request, schema: Schema, answer: Answer) -> None:
    """A row for each process: which of the files it is from, its place, and what came of it."""
    tables = [t for t in schema.tables if t not in LARGE] + (["allocations"] if request.large else [])
    answer.columns(COLUMNS)
    with writing(request.lake, answer.note) as scratch:
        job = Job(request.tool, schema, request.paths, request.lake, scratch, tables, version=request.version)
        job.had = job.store.begin()
        sources = place_all(request.files, Known(had.place for had in job.had.values()), request.text)
        for outcome in collect(job, sources):
            source, nth = outcome.source, outcome.file
            note = note_of(outcome, os.fsdecode(request.paths[nth]), len(sources) == 1)
            if note:
                answer.note(note)
            place = source.place
            answer.rows([[nth, place.project, place.day, place.run, place.rank, outcome.peak, outcome.less, outcome.error]])
        job.store.compact(False)


def temporary_lake(request: Request, schema: Schema, answer: Answer, lake: str) -> None:
    tables = schema.wanted_tables(request.text)
    columns = {t: schema.wanted_columns(request.text, t) for t in LARGE}
    scratch = f"{lake}/.new"
    os.mkdir(scratch)
    sources = place_all(request.files, Known(), "")
    job = Job(request.tool, schema, request.paths, lake, scratch, tables, columns, "uncompressed", request.version)
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
        query(schema, lake, request.text, answer, parts=True)
    finally:
        shutil.rmtree(lake, ignore_errors=True)


def perform(request: Request, answer: Answer) -> None:
    schema = Schema(request.tool)
    if request.what == "collect":
        collect_into_lake(request, schema, answer)
    elif request.what == "dashboard":
        dashboard(schema, request.lake, answer)
    elif request.has_lake:
        query(schema, request.lake, request.text, answer)
    else:
        ask_recordings(request, schema, answer)


def main(request: Mapping[str, Any], strings: Sequence[bytes]) -> None:
    end_by_signals()
    answer = Answer()
    try:
        perform(Request(request, strings), answer)
        answer.end()
    except Ended:
        os._exit(1)  # the command ends by the signal
    except Sentence as sentence:
        answer.fail(str(sentence), sentence.code)
    except Exception as error:
        answer.fail(words(error), exit_code_of(error), "error")
