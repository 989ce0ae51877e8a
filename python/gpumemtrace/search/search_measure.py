# SPDX-License-Identifier: Apache-2.0
"""The result of a run: figures of its recordings (of the process with the highest peak if there are several), the device's own counts, and
the cause if memory ran out."""
from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

from .._answer import many
from .search_facts import Facts
from .search_stable import STABLE
from .search_trial import FAILED, FITS, REFUSED, SHARED_LIMIT, UNSTABLE, Trial
from .search_usage import Usage, read_usage
from .search_watch import End
from .search_watched import rise_of

NAME = "gpumemtrace"  # begins the lines that the tool itself prints
FEW_STEPS = "with it the program makes fewer than two steps of its optimizer before it ends, so its peak is not known: let it train longer"
DOCUMENT = '{"file":'  # begins what `run --json` says in the end
LINE = 2000  # most characters of the last words
PREFIX = re.compile(r"(\([^)]*\) )?(ERROR [^\]]*\] )?")  # an engine's, before each line of a process
ERROR = re.compile(r"([\w.]+\.)?\w*(Error|Exception): (?!.*root cause)")
TOKENS = re.compile(r"KV cache size: ([\d,]+) tokens|KV Cache is allocated. #tokens: (\d+)")  # vLLM's, SGLang's capacity
TOO_LITTLE = re.compile(r"KV cache|cache blocks|memory utilization|mem-fraction-static|Not enough memory")  # errors of engines


@dataclass
class Measured:
    seen: List[Dict[str, Any]] = field(default_factory=list)  # facts of each recording that can be read
    main: Optional[Dict[str, Any]] = None  # of the one with the highest peak
    first: Optional[Dict[str, Any]] = None  # of the first that ran out of memory
    refusals: int = 0
    fails: int = 0  # recorded allocations that failed, retried or not
    refused: bool = False  # out of memory, and a process did not recover
    caught: bool = False  # a training process recovered

    def add(self, facts: Dict[str, Any]) -> None:
        self.seen.append(facts)
        self.fails += facts.get("fails", 0)
        if "units" in facts and (self.main is None or facts["peak"] > self.main["peak"]):
            self.main = facts
        if facts.get("refusals"):
            self.refusals += facts["refusals"]
            self.refused |= not facts["went_on"]
            self.caught |= facts["trains"]
            if self.first is None or facts["refused_ns"] < self.first["refused_ns"]:
                self.first = facts

    def verdict(self, end: End, usage: Usage, words: str) -> str:
        """A failed allocation that the program did not recover from is the reason, however it ended. A library may only report that a call
        failed. Then only the device's counts show the failed allocation. An engine says that it has too little."""
        failed = bool(end.code) and not end.early
        if self.refused or (failed and TOO_LITTLE.search(words)) or (failed and self.refusals and not self.caught) or (failed and usage.refused > self.fails):
            return REFUSED
        if failed or self.main is None or end.hangs or (end.late and not end.partly):
            return FAILED
        return UNSTABLE if end.early and end.stable != STABLE else FITS


def last_words(path: str) -> Tuple[str, int]:
    """The error of the last traceback, else the last line of the program's output, or the tool's if the program printed nothing; before them
    what Triton says of a limit of the card. And the tokens that an engine has room for."""
    words, own, limit, error, traced, tokens = "", False, "", "", False, 0
    with contextlib.suppress(OSError), open(path, "rb") as f:
        for piece in iter(lambda: f.readline(LINE), b""):
            line = os.fsdecode(piece.rstrip(b"\n"))
            ours = line.startswith(NAME)
            limit = line.strip() if SHARED_LIMIT in line else limit
            text, room = PREFIX.sub("", line, 1), TOKENS.search(line)
            error = text if traced and ERROR.match(text) else error
            traced = text.startswith("  ")
            tokens = int((room[1] or room[2]).replace(",", "")) if room else tokens
            if line.strip(" \t\r") and not (ours and own) and not line.startswith(DOCUMENT):
                words = line.lstrip(" \t\r")
                own |= not ours
    return limit or (words if ERROR.match(words) else error or words), tokens


def changes_not_made(trial: Trial) -> List[Dict[str, Any]]:
    """What `run --with` says of changes that had no effect."""
    with contextlib.suppress(OSError, ValueError), open(trial.path(".log"), encoding="utf-8", errors="replace") as f:
        said = [line for line in f if line.startswith(DOCUMENT)]
        return [change for line in said[-1:] for change in json.loads(line).get("changes", ()) if not change["times"]]
    return []


def effect_of(trial: Trial, m: Measured, verdict: str) -> Dict[str, Any]:
    """Why the run does not show what the changes do: fewer optimizer steps are made where a batch is accumulated of parts."""
    missed = changes_not_made(trial)
    found = {"not_made": {x["change"]: x["text"] for x in missed}, "instead": {x["change"]: x["instead"] for x in missed if "instead" in x}}
    if verdict == REFUSED:
        return found  # it may have been too early
    if missed:
        return {"verdict": FAILED, **found}
    fewer = any(text.startswith("batch=") for text in trial.plan.varied.changes(trial.setting)) and m.main and m.main["trains"]
    few = fewer and m.main and (m.main["steps"] < 2 or m.main["updates"] == 1)  # then no sum of gradients met the state that the first step makes
    return {"verdict": FAILED, "late": FEW_STEPS} if m.main and (m.main["lacks_step"] or few) else {}


def figures(trial: Trial, m: Measured, end: End, usage: Usage) -> Dict[str, Any]:
    main = m.main or {}
    steps = main.get("steps", 0)
    units, by_steps, rising = steps, steps > 0, rise_of(main.get("units", ()))
    if end.early and not end.hangs:
        by_steps, rising = end.course.steps, end.course.stable.each
        units = units if by_steps else end.course.units
    return {"exit_code": end.code, "steps": steps, "limit_seconds": trial.plan.seconds if end.late else 0, "peak_bytes": main.get("peak", 0),
            "peak_reserved_bytes": main.get("reserved", 0), "device_bytes": usage.peak, "context_bytes": usage.context, "asked": usage.asked,
            "refusals": m.refusals, "early": int(end.early), "units": units, "by_steps": int(by_steps), "rising_bytes": rising,
            "nccl_bytes": usage.nccl[0], "nccl_least_bytes": usage.nccl[1], "nccl_most_bytes": usage.nccl[2],
            "cudnn_bytes": usage.convolution[0], "cudnn_most_bytes": usage.convolution[1], "cudnn_estimated": usage.convolution[2], "modules": usage.modules,
            "resident_bytes": end.resident}


def ended(units: int, by_steps: bool) -> str:
    """How much of a run that was ended early was observed."""
    return f"Measured over {many(units, 'step' if by_steps else 'second')}{'' if by_steps else ' of work on the device'}; the run was ended then."


def ranks(trial: Trial, m: Measured) -> List[Dict[str, Any]]:
    """Peaks by rank, in a world of which only some ranks run."""
    return [{"rank": rank, "peak_bytes": facts["peak"], "peak_reserved_bytes": facts["reserved"], "recording": os.path.basename(facts["path"])}
            for rank in trial.plan.world.ranks for facts in m.seen if facts["rank"] == rank and facts.get("peak")]


def document_of(trial: Trial, command: str, path: str) -> Dict[str, Any]:
    done = subprocess.run([trial.plan.tool, command, "--json", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with contextlib.suppress(ValueError):
        document = json.loads(done.stdout)
        if isinstance(document, dict):
            return document
    return {}


def result_of(trial: Trial, m: Measured, end: End, usage: Usage) -> Dict[str, Any]:
    words, tokens = last_words(trial.path(".log"))
    result: Dict[str, Any] = {"fingerprint": trial.fingerprint, "card": trial.card.name, "verdict": m.verdict(end, usage, words)}
    if trial.plan.varied.changes(trial.setting):
        result.update(effect_of(trial, m, result["verdict"]))
    numbers = figures(trial, m, end, usage)
    if end.early and not (end.hangs or end.idle or end.late):
        result["ended"] = ended(numbers["units"], bool(numbers["by_steps"]))
    result.update(numbers, last_words=words, kv_cache_tokens=tokens)
    result.update((name, text) for name, text in (("hangs", end.hangs), ("idle", end.idle), ("late", end.late)) if text)
    if m.main:
        result["recording"] = os.path.basename(m.main["path"])
    result["ranks"] = ranks(trial, m)
    if m.main:
        result.update(m.main["description"])
        result["summary"] = document_of(trial, "report", m.main["path"]).get("summary", [])
    if m.first:
        result["oom"] = document_of(trial, "oom", m.first["path"])
    return result


def make_page(trial: Trial, recording: str) -> None:
    subprocess.run([trial.plan.tool, "html", recording, "-o", trial.path(".html")], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def keep(trial: Trial, result: Dict[str, Any]) -> None:
    """The file gets its name when it is complete; only its owner may read it."""
    part = f"{trial.path('.json')}.{os.getpid()}.part"
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as f:
            json.dump(result, f, separators=(",", ":"))
            f.write("\n")
        os.replace(part, trial.path(".json"))
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def measure(trial: Trial, facts: Facts, end: End) -> None:
    m = Measured()
    for path in trial.recordings():
        found = facts.ask("whole", path)
        if found is not None:
            m.add({**found, "path": path})
    usage = read_usage(trial.path(".usage"))
    with contextlib.suppress(OSError):
        os.unlink(trial.path(".usage"))
    keep(trial, result_of(trial, m, end, usage))
    if trial.plan.pages and m.main:
        make_page(trial, m.main["path"])
