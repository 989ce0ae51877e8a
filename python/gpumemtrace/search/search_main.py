# SPDX-License-Identifier: Apache-2.0
"""What `gpumemtrace fit`, `bisect` and `advise` hand over."""
from __future__ import annotations

import os
import traceback
from typing import Any, Dict, Mapping, Sequence

from .._answer import CHECK, OK, UNREADABLE, USAGE, Answer, Interrupted, Sentence
from .search_bisect import bisect
from .search_cards import find_cards
from .search_cells import cells_of, find_needs
from .search_document import Found, document_of, page_of
from .search_largest import largest_of, lines_of
from .search_runs import Runs, folder_of, listen
from .search_sets import searches_of
from .search_text import print_text
from .search_trial import FAILED, FITS, LOOK, SECONDS, STEPS, UNSTABLE, Card, Plan, Trial
from .search_try import try_suggestions
from .search_vary import Varied, one, parse
from .search_world import launcher_of
from .search_world import parse as parse_world


def code_of(found: Found) -> int:
    """If nothing fits and some runs failed, the first of them is the reason."""
    if any(c.fits for c in found.cells) or any(s.fits for s in found.sets()):
        return OK
    failed = next((c for c in found.cells if c.failed), None)
    if failed:
        raise failed.trial.failure_sentence()
    return CHECK


def search(found: Found, cards: Sequence[Card], sets: int, answer: Answer) -> None:
    """sets: most runs to find changes with which a card fits."""
    found.cells += cells_of(found.runs, cards)
    if not all(c.failed for c in found.cells):  # else the program itself is at fault
        found.largest = largest_of(found.runs, found.cells)
        find_needs(found.runs, found.cells)
    found.lines = lines_of(found.runs)
    found.searches = searches_of(found.runs, found.cells, sets, answer) if sets else []


def plan_of_fit(plan: Plan, request: Mapping[str, Any]) -> None:
    plan.world = parse_world(request.get("ranks"), plan.environment)
    launcher = launcher_of(plan.command)
    if plan.world.ranks and launcher:
        raise Sentence(f"the ranks of a world of {plan.world.size} are started here: give the program without its launcher ({launcher})", USAGE)
    if "obstacle" in request:  # the program cannot be started, or would not be recorded
        raise Sentence(request["obstacle"], USAGE)
    if request["sets"] and request["vary"]:
        raise Sentence("--make-it-fit and --vary exclude each other: give the program the values that it is to have", USAGE)
    plan.varied = parse(request["vary"])
    plan.steps, plan.look = request["steps"] or STEPS, 0 if request["steps"] else LOOK
    plan.to_end, limit = bool(request["to_end"]), request["max_time"]
    plan.seconds = limit if limit >= 0 else 0 if plan.to_end else SECONDS
    plan.patient, plan.pages = plan.to_end or limit >= 0, bool(request["folder"])


def fit(plan: Plan, cards: Sequence[Card], request: Mapping[str, Any], answer: Answer) -> int:
    plan_of_fit(plan, request)
    with folder_of(request["folder"], "fit", plan.environment) as folder:
        plan.folder = folder
        found = Found(Runs(plan, answer, request["jobs"]), [], not request["folder"])
        try:
            search(found, cards, int(request["sets"]), answer)
        except Interrupted:
            raise Interrupted("" if found.temporary else f"interrupted; the same command goes on with the runs in {folder}") from None
        document = document_of(found)
        if not found.temporary:
            answer.put("page", [f"{folder}/index.html", page_of(found, document)], as_document=True)
        answer.document(document)
        if not all(c.failed for c in found.cells):
            print_text(found, document, answer)
        return code_of(found)


def run_once(plan: Plan, card: Card, answer: Answer) -> Trial:
    runs = Runs(plan, answer)
    trial = runs.trial(card, plan.varied.settings()[0])
    runs.run([trial])
    return trial


def runs_of_advise(plan: Plan, card: Card, request: Mapping[str, Any], answer: Answer) -> int:
    """The program as it is, with its recordings in the folder that was made for them; or with each of the changes."""
    if request["folder"]:
        plan.folder = request["folder"]
        trial = run_once(plan, card, answer)
        recordings = trial.recordings()
        if trial.verdict == FAILED or not recordings:
            raise trial.failure_sentence()
        answer.put("result", {"recording": recordings[0]})
    for text in request["tries"]:
        with folder_of("", "advise", plan.environment) as folder:
            plan.folder, plan.varied = folder, one(text)
            trial = run_once(plan, card, answer)
        answer.put("result", {"finished": trial.verdict in (FITS, UNSTABLE), "peak_bytes": trial.number("peak_bytes"),
                           "peak_reserved_bytes": trial.number("peak_reserved_bytes")})
    return OK


def plan_of(request: Mapping[str, Any]) -> Plan:
    environment: Dict[str, str] = dict(row.partition("=")[::2] for row in request["environment"] if "=" in row)
    plan = Plan(request["tool"], request["version"], environment, request["command"], stand_in=request["world"], varied=Varied())
    plan.steps = request["steps"]
    return plan


def perform(request: Mapping[str, Any], answer: Answer) -> int:
    plan = plan_of(request)
    if request["what"] == "try":
        return try_suggestions(plan, request, answer)
    cards = find_cards(request["device"], request["cards"], "--cards" if request["what"] == "fit" else "--sim")
    if request["what"] == "fit":
        return fit(plan, cards, request, answer)
    work = bisect if request["what"] == "bisect" else runs_of_advise
    return work(plan, cards[0], request, answer)


def main(request: Mapping[str, Any]) -> None:
    listen()
    answer = Answer()
    try:
        answer.end(perform(request, answer))
    except Sentence as sentence:
        answer.fail(sentence)
    except OSError as error:
        answer.fail(Sentence(f"{error.filename or ''}{': ' if error.filename else ''}{error.strerror}", UNREADABLE))
    except Exception:
        traceback.print_exc()
        os._exit(1)  # the command prints the last line
