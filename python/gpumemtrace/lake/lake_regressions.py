# SPDX-License-Identifier: Apache-2.0
"""Commits of a lake that need more memory than the one before: of their branch, or of the main one."""
from __future__ import annotations

import datetime
import json
import os
import shlex
import subprocess
from typing import Any, Dict, List, Mapping

from .._answer import USAGE, Answer, Sentence, in_units
from .lake_duckdb import Schema, ask, connect, quoted

DIFFS = 20  # of the largest regressions
SAME = "project, program, card, model, batch, ranks"  # of runs that are compared

# The peak of a run is that of its highest rank, of a commit the median of its runs; its recording is of the run nearest to that.
COMMITS = f"""
with runs_ as (
  select project, coalesce(program, command, '') as program, coalesce(max(card), '') as card, coalesce(max(model), '') as model,
    coalesce(max(batch), '') as batch, count(*) as ranks, run, coalesce(git_branch, '') as branch, git_commit as commit, min(started) as started,
    min(day) as day, max(peak_bytes) as peak, arg_max(recording, peak_bytes) as recording
  from ranks where git_commit is not null and peak_bytes is not null and not coalesce(truncated, false)
  group by project, coalesce(program, command, ''), run, git_branch, git_commit
), medians as (
  select *, cast(median(peak) over (partition by {SAME}, branch, commit) as bigint) as middle from runs_
)
select {SAME}, branch, commit, min(started) as started, cast(min(day) as varchar) as day, max(middle) as peak,
  arg_min(recording, abs(peak - middle)) as recording
from medians group by {SAME}, branch, commit
"""

# `base` is the newest commit before it, of the branch it is compared with.
PAIRS = """
select c.*, b.branch as base_branch, b.commit as base_commit, b.peak as base_peak, b.recording as base_recording
from (select *, row_number() over (partition by {same}, branch order by started desc, commit desc) as age from commits_) c
asof join (select * from commits_) b
  on {keys} and b.branch = {branch} and c.started > b.started
where {chosen} and c.commit <> b.commit
order by (c.peak - b.peak) / cast(greatest(b.peak, 1) as double) desc, c.project, c.program
"""


def pairs(connection: Any, against: str, since: str) -> List[Dict[str, Any]]:
    keys = " and ".join(f"c.{name} = b.{name}" for name in SAME.split(", "))
    query = PAIRS.format(same=SAME, keys=keys, branch=quoted(against) if against else "c.branch", chosen=f"c.day >= {quoted(since)}" if since else "c.age = 1")
    found = connection.execute(query)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row)) for row in found.fetchall()]


def first_finding(tool: str, old: str, new: str) -> str:
    """Of their diff, "" if a recording is gone."""
    if not (os.path.exists(old) and os.path.exists(new)):
        return ""
    said = subprocess.run([tool, "diff", old, new, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        findings = json.loads(said.stdout)["findings"]
    except (ValueError, KeyError):
        return ""
    return str(findings[0]["text"]) if findings else "No difference by class and line."


def row_of(p: Mapping[str, Any], diff: str) -> Dict[str, Any]:
    row = {"project": p["project"], "program": p["program"], "card": p["card"], "branch": p["branch"], "commit": p["commit"], "day": p["day"],
           "base_branch": p["base_branch"], "base_commit": p["base_commit"], "peak_bytes": p["peak"], "base_peak_bytes": p["base_peak"],
           "change_percent": round(100 * (p["peak"] - p["base_peak"]) / max(p["base_peak"], 1), 1), "recording": p["recording"] or "",
           "base_recording": p["base_recording"] or ""}
    return {**row, "diff": diff} if diff else row


def say(answer: Answer, row: Mapping[str, Any]) -> None:
    where = ", ".join(filter(None, (row["project"], row["program"], row["card"], row["branch"])))
    answer.line(f"{where}: {in_units(row['base_peak_bytes'])} -> {in_units(row['peak_bytes'])} ({row['change_percent']:+} %)")
    of = f" of {row['base_branch']}" if row["base_branch"] != row["branch"] else ""
    answer.line(f"  {row['base_commit'][:10]}{of} -> {row['commit'][:10]}")
    if "diff" in row:
        answer.line(f"  {row['diff']}")
        answer.line(f"  gpumemtrace diff {shlex.quote(row['base_recording'])} {shlex.quote(row['recording'])}")


def regressions(tool: str, schema: Schema, lake: str, options: Mapping[str, Any], answer: Answer) -> int:
    """The exit code."""
    if options["since"]:
        try:
            datetime.date.fromisoformat(options["since"])
        except ValueError:
            raise Sentence(f"--since needs a day such as 2026-11-22, not {options['since']}", USAGE) from None
    connection = connect()
    ask(connection, schema, lake, "ranks", lambda: connection.execute(f"create or replace temp table commits_ as {COMMITS}"))
    compared = pairs(connection, options["against"], options["since"])
    limit = float(options["limit"])
    grown = [p for p in compared if p["peak"] - p["base_peak"] > (limit / 100 * p["base_peak"] if options["percent"] else limit)]
    rows = [row_of(p, first_finding(tool, p["base_recording"] or "", p["recording"] or "") if nth < DIFFS else "") for nth, p in enumerate(grown)]
    failed = bool(rows) and bool(options["fail"])
    answer.document({"lake": lake, "compared": len(compared), "failed": failed, "regressions": rows})
    for row in rows:
        say(answer, row)
    if not rows:
        answer.line(f"No regression: {len(compared):,} {'pair' if len(compared) == 1 else 'pairs'} of commits compared.")
    return 1 if failed else 0
