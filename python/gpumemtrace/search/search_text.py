# SPDX-License-Identifier: Apache-2.0
"""The result of a search as text: the table of cards, then the owners of the peak, then why cards do not fit."""
from __future__ import annotations

from typing import Any, Dict, List

from .._answer import Answer, Column, apart, in_units, many
from .search_cells import Cell, device_on
from .search_changes import costs, costs_of, parse_all, print_code
from .search_document import Found
from .search_sets import Peak, Search
from .search_trial import FAILED, FITS, REFUSED, UNSTABLE, Trial
from .search_vary import AND

REMEDIES = 3
# Written by tests/cards/page.py: published figures of programs that are made of the same.
# accuracy
ACCURACY: Dict[str, str] = {
    "": "Of 38 published figures of 14 programs like this one (matrix products alone), half came out at first try within 0.14 % and 76 % within 1 %.",
    "compiled": "Of 4 published figures of 3 programs like this one (compiled kernels), half came out at first try within 0.32 % and 75 % within 1 %.",
    "convolutions": "Of 23 published figures of 10 programs like this one (convolutions), half came out at first try within 1.98 % and 48 % within 1 %.",
}
# end of accuracy
LINES = 8  # a table of more is left out
CARDS: List[Column] = [("card", 2, -16), ("setting", 2, -8), ("fits", 2, -4), ("capacity", 1, 9), ("allocated", 1, 9), ("reserved", 1, 9),
                       ("context + libraries", 1, 19), ("free", 1, 9), ("lacks", 1, 9), ("KV tokens", 1, 11), ("source", 2, -3)]
SETS: List[Column] = [("", 2, 2), ("with", 1, -16), ("cost", 2, -10), ("peak", 1, 9), ("predicted", 1, 9), ("free", 1, 9), ("source", 2, -3)]


def verdict_word(cell: Cell) -> str:
    if cell.failed and cell.trial.number("limit_seconds"):
        return "late"
    return {FITS: "yes", REFUSED: "no"}.get(cell.verdict, cell.verdict)


def cards_table(found: Found, rows: List[Dict[str, Any]], answer: Answer) -> None:
    """The columns of settings, of what is lacking and of an engine's capacity exist only if there are some."""
    varied = found.runs.plan.varied
    table = []
    for cell, row in zip(found.cells, rows):
        sizes = [row["capacity_bytes"], row["peak_bytes"], row["peak_reserved_bytes"], row["context_bytes"], max(row["margin_bytes"], 0)]
        lacks = row.get("lacking_bytes")
        tokens = row.get("kv_cache_tokens")
        table.append([row["card"], varied.words(cell.setting), verdict_word(cell), *map(in_units, sizes),
                      in_units(lacks) if lacks else "", f"{tokens:,}" if tokens else "",
                      "run" if cell.measured else f"from {cell.trial.card.name}"])
    some = [i for i, column in enumerate(CARDS) if column[0] not in ("lacks", "KV tokens") or any(row[i] for row in table)]
    kept = [i for i in some if varied.items or CARDS[i][0] != "setting"]
    answer.table([CARDS[i] for i in kept], [[row[i] for i in kept] for row in table])


def largest_tables(found: Found, answer: Answer) -> None:
    varied = found.runs.plan.varied
    if found.largest:
        answer.line()
        answer.table([("largest that fits", 2, -17), ("setting", 2, -8), ("", 2, -3)],
                     [[x.card.name, varied.words(x.setting), "the next does not fit" if x.high else "the largest that was asked for"]
                      for x in found.largest if x.low])
    if 0 < len(found.lines) <= LINES:
        name = varied.items[varied.counted()].name
        answer.line()
        answer.table([("needed", 2, -17), ("by a straight line", 2, -8)],
                     [[x.card.name, f"{in_units(int(max(x.base, 0)))} + {in_units(int(max(x.each, 0)))} x {name}, off by {100 * x.error:.1f} % at most"]
                      for x in found.lines])


def place(found: Found, cell: Cell, answer: Answer) -> None:
    t, words = cell.trial, found.runs.plan.varied.words(cell.setting)
    setting, when = f" with {words}" if words else "", f", {t.text('peak_text')}" if t.text("peak_text") else ""
    answer.sentence(f"Peak on {t.card.name}{setting}: {in_units(t.number('peak_bytes'))} in use{when}; most by {t.text('peak_line')} "
                    f"({t.text('peak_class').replace('_', ' ')})")


def ended(cell: Cell, answer: Answer) -> None:
    """How the run ended, unless by itself, and other remarks on it."""
    t = cell.trial
    if t.number("refusals"):
        answer.sentence(f"Memory ran out {many(t.number('refusals'), 'time')}, and the program went on.")
    for member in ("idle", "late", "ended"):
        if t.text(member):
            answer.sentence(t.text(member))


def ranks(found: Found, row: Dict[str, Any], answer: Answer) -> None:
    """Peaks by rank, in a world of which only some ranks were run."""
    size = found.runs.plan.world.size
    if row.get("ranks"):
        answer.line()
        answer.table([("rank", 2, 8), ("allocated", 1, 9), ("reserved", 1, 9)],
                     [[f"{r['rank']:,}", in_units(r["peak_bytes"]), in_units(r["peak_reserved_bytes"])] for r in row["ranks"]])
        answer.sentence(f"The other ranks of {size} were simulated, not run.")
    if "nccl_bytes" in row and size:
        expected, least, most = (in_units(row[m]) for m in ("nccl_bytes", "nccl_least_bytes", "nccl_most_bytes"))
        answer.sentence(f"NCCL's buffers and kernels are an estimate: {expected}, counted in context + libraries; on a card they may take {least} to {most}.")


def workspaces(rows: List[Dict[str, Any]], answer: Answer) -> None:
    """Cards on which a figure would be more exact than it is."""
    some = [row for row in rows if row["fits"] and "cudnn_bytes" in row]
    if some:
        row = max(some, key=lambda r: r["cudnn_most_bytes"])
        answer.sentence(f"cuDNN's workspaces were not measured on cards like {', '.join(dict.fromkeys(r['card'] for r in some))}. The largest is taken as "
                        f"{in_units(row['cudnn_bytes'])}, counted in reserved; it may be 0 to {in_units(row['cudnn_most_bytes'])}.")


def made_of(trial: Trial) -> str:
    """What it is made of besides matrix products, a key of ACCURACY."""
    has = {"convolutions": trial.number("cudnn_most_bytes"), "compiled": trial.number("modules"), "ranks": trial.plan.world.size > 1 or trial.number("nccl_bytes")}
    return " ".join(word for word, there in has.items() if there)


def reason(found: Found, cell: Cell, row: Dict[str, Any], answer: Answer) -> None:
    words = found.runs.plan.varied.words(cell.setting)
    name = row["card"] + (f" with {words}" if words else "")
    answer.line()
    if cell.failed:
        answer.sentence(f"{name}: {cell.trial.failed()}, {row['error']}")
    elif cell.verdict == UNSTABLE:
        answer.sentence(f"{name} is not stable" + (f": {row['rising']}" if "rising" in row else ""))
        ended(cell, answer)
    else:
        answer.sentence(f"{name} does not fit: {needs(row)}{row['cause']}: {row['text']}")
    for i, remedy in enumerate(row.get("remedies", ())[:REMEDIES]):
        answer.item(i + 1, f"{remedy['what']} (saves {'up to ' if remedy['at_most'] else ''}{in_units(remedy['saves_bytes'])}; {remedy['how_known']})")


def needs(row: Dict[str, Any]) -> str:
    if "lacking_bytes" not in row:
        return ""
    need, room, lacks = row["needed_bytes"], row["available_bytes"], row["lacking_bytes"]
    ends = f" and lacks {in_units(lacks)}" if lacks else ", which would be enough"
    return f"the program took {apart(need, room)} of {row['needed_on']}, this card has {apart(room, need)}{ends}. Cause: "


def is_said(cell: Cell, before: List[Cell]) -> bool:
    """One reason per run that does not fit; the other cells based on that run have the same. Of several settings the smallest is enough."""
    return cell.fits or any(b.verdict == cell.verdict != UNSTABLE and (b.trial is cell.trial or b.card == cell.card or cell.verdict == FAILED)
                            for b in before)


def sets(search: Search, answer: Answer) -> None:
    """The sets of changes with which one card fits, or how close they came."""
    card, fits = search.cell.card, [s for s in search.in_order() if s.fits]
    answer.line()
    if fits:
        answer.title(f"Changes with which it fits {card.name} ({in_units(card.memory)}), the cheapest first")
        answer.table(SETS, [[str(i + 1), AND.join(s.texts), costs(parse_all(s.texts)), in_units(s.cell.trial.number("peak_bytes")), between(s.predicted),
                             in_units(card.memory - device_on(s.cell.trial, card)), "run" if s.cell.measured else f"from {s.cell.trial.card.name}"]
                            for i, s in enumerate(fits)])
        for i, s in enumerate(fits):
            answer.item(i + 1, f"{AND.join(s.texts)}: {costs_of(parse_all(s.texts))}. To write it:")
            print_code(parse_all(s.texts), answer)
    else:
        answer.sentence(none_fits(search, card.name))
    for trial in (s.cell.trial for s in search.sets if s.verdict == FAILED and not (s.cell.trial.missed() and s.cell.trial.missed().keys() == s.cell.trial.instead().keys())):
        answer.sentence(trial.failure() if trial.missed() else f"{search.runs.plan.varied.words(trial.setting)}: {trial.failure()}")
    if search.untried:
        answer.sentence(f"{many(search.runs.ran, 'run')} of changes made; {many(search.untried, 'more set')} might fit by prediction (--max-runs N runs more).")


def between(peak: Peak) -> str:
    """A range where the two ends differ in words."""
    words = [in_units(x) for x in peak]
    numbers, units = zip(*(word.split(" ") for word in words))
    return words[1] if words[0] == words[1] else f"{numbers[0]} - {words[1]}" if units[0] == units[1] else f"{words[0]} - {words[1]}"


def none_fits(search: Search, card: str) -> str:
    if not search.known[frozenset()].saves:
        without = f": none of the {many(search.without, 'suggestion')} can" if search.without else ""
        return f"No set of changes fits {card}: no change that saves memory can be made from outside{without}."
    closest = search.closest()
    fits = "is known to fit" if any(s.cell.trial.text("late") for s in search.sets) else "fits"
    text = f"No set of these changes {fits} {card}: {', '.join(dict.fromkeys(search.candidates() + search.learnt.useless))}."
    if closest:
        text += (f" The closest is {AND.join(closest.texts)}: it takes {apart(closest.needs, search.cell.card.memory)} "
                 f"and lacks {in_units(max(closest.needs - search.cell.card.memory, 0))}.")
    elif not search.sets:
        texts, least = search.closest_unrun()
        text += (f" The closest is {AND.join(texts)}: by prediction it takes at least {in_units(least)} "
                 f"and lacks {in_units(max(least - search.cell.card.memory, 0))}, so none was run.")
    return text + (f" {many(search.without, 'suggestion')} above can only be made in the program itself." if search.without else "")


def runs(found: Found, answer: Answer) -> None:
    r = found.runs
    answer.line()
    if any(c.fits for c in found.cells):
        answer.sentence(ACCURACY.get(made_of(next(c.trial for c in found.cells if c.fits)), ""), 0)
    answer.sentence(
        f"{r.ran + sum(x.runs.ran for x in found.searches)} run{'' if r.ran == 1 and not found.searches else 's'}{', the others were in the folder' if r.kept else ''}."
        + ("" if all(c.measured for c in found.cells) else
           " A row that was not run follows from the run on the card of the same generation that it names.")
        + ("" if found.temporary else f" The page: {r.plan.folder}/index.html"), 0)


def summary(found: Found, document: Dict[str, Any], answer: Answer) -> None:
    """What matters about one run. Why memory ran out stands with the cards that do not fit."""
    said = [item for item in document["summary"] if item["kind"] != "out_of_memory"]
    if not said:
        return
    run = next((c for c in found.cells if c.fits), found.cells[-1]).trial
    answer.sentence(f"What matters about the run on {run.card.name}{' (fit -o FOLDER keeps its recording)' if found.temporary else ''}:")
    for i, item in enumerate(said):
        answer.item(i + 1, f"{item['text']} Next: {item['action']}")
    answer.line()


def print_text(found: Found, document: Dict[str, Any], answer: Answer) -> None:
    rows, cells = document["cards"], found.cells
    fits = [i for i, c in enumerate(cells) if c.fits]
    answer.title(f"Fits {len(fits)} of {len(cells)} cards{' and settings' if found.runs.plan.varied.items else ''}")
    answer.line()
    summary(found, document, answer)
    cards_table(found, rows, answer)
    largest_tables(found, answer)
    if fits:
        cell, row = cells[fits[0]], rows[fits[0]]
        answer.line()
        place(found, cell, answer)
        if "rising" in row:
            answer.sentence(f"The peak rises from step to step: {row['rising']}.")
        ended(cell, answer)
        for unused in document["unused"]:
            answer.sentence(unused["text"])
        ranks(found, row, answer)
        workspaces(rows, answer)
    for i, cell in enumerate(cells):
        if not is_said(cell, cells[:i]):
            reason(found, cell, rows[i], answer)
    for search in found.searches:
        sets(search, answer)
    runs(found, answer)
