# SPDX-License-Identifier: Apache-2.0
"""Each card with each setting. For each code generation the program runs on the card with the most memory, because the others have the same
compute capability, by which PyTorch chooses its code. The result for another card is computed from that run only if
- the program did not query free memory; and
- it fits with room to spare, so that neither scratch memory that depends on the number of multiprocessors nor a cache that is released on
  demand matters; or the larger card was out of memory, or its run was not stable.
Everything else is run on the card itself."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import List, Optional, Sequence

from .search_runs import Runs
from .search_stable import ends_after, matters
from .search_trial import FAILED, FITS, REFUSED, Card, Trial
from .search_vary import Setting

MIB = 1 << 20
LARGEST = 1 << 40  # bytes of a card on which a program is run only to learn what it needs


@dataclass
class Cell:
    """The result for one card with one setting."""
    card: Card
    setting: Setting
    trial: Trial  # its own run, or one of the same generation
    roomy: Optional[Trial] = None  # if it does not fit: a run with the same setting that did, on a card with more memory

    @property
    def measured(self) -> bool:
        """The run is its own."""
        return self.trial.card == self.card

    @property
    def verdict(self) -> str:
        return self.trial.verdict

    @property
    def fits(self) -> bool:
        return self.verdict == FITS

    @property
    def failed(self) -> bool:
        return self.verdict == FAILED

    def device(self) -> int:
        """Peak use of this card; of a run that ran out of memory, until then."""
        return device_on(self.trial, self.card)

    def needed(self) -> int:
        """What it takes of this card to fit; 0: that is not known."""
        if self.fits:
            return self.device()
        return device_on(self.roomy, self.card) if self.roomy else 0

    def ends(self) -> int:
        """Steps, or seconds of work, until this card is out of memory; 0: the peak does not rise. Blocks may grow into what is not used by others."""
        t = self.trial
        used = max(device_on(t, self.card) - t.number("peak_reserved_bytes"), 0) + t.number("peak_bytes")
        return ends_after(t.number("units"), t.number("rising_bytes"), max(self.card.memory - used, 0))

    def follows(self) -> bool:
        """From the run on another card."""
        t, verdict = self.trial, self.verdict
        if self.measured:
            return True
        if verdict == FAILED:
            return self.device() <= self.card.memory
        # Memory ran out and the program recovered: on another card that happens at another moment.
        if t.number("asked") or t.number("refusals") > (verdict == REFUSED):
            return False
        if verdict == REFUSED:
            return True
        slow = verdict == FITS and t.number("early") and t.number("rising_bytes")
        return self.device() + room_to_spare(t.card, self.card) <= self.card.memory and not (slow and matters(t.number("units"), self.ends()))


def device_on(trial: Trial, card: Card) -> int:
    device, context = trial.number("device_bytes"), trial.number("context_bytes")
    return device if trial.card == card else device - min(context, device) + card.context


def room_to_spare(run: Card, card: Card) -> int:
    return card.memory // 100 + 16 * MIB if run.processors == card.processors else card.memory // 50 + 64 * MIB


def cells_of(runs: Runs, cards: Sequence[Card]) -> List[Cell]:
    cells = []
    for setting in runs.plan.varied.settings():
        for card in cards:
            first = max((c for c in cards if c.generation() == card.generation()), key=lambda c: (c.memory, c is card))
            cells.append(Cell(card, setting, runs.trial(first, setting)))
    runs.run([c.trial for c in cells])
    others = [c for c in cells if not c.follows()]
    for c in others:
        c.trial = runs.trial(c.card, c.setting)
    runs.run([c.trial for c in others])
    return cells


# ---- what a card lacks


def tells_needs(trial: Trial) -> bool:
    """A program that asks how much memory there is may take more of a larger card. One that recovered takes less than it would."""
    return trial.verdict == FITS and not any(map(trial.number, ("asked", "refusals", "kv_cache_tokens")))


def roomy_of(runs: Runs, cell: Cell) -> Optional[Trial]:
    """Of the same generation if there is one, and then on the smallest card."""
    known = [t for t in runs.trials.values() if t.setting == cell.setting and t.card.memory > cell.card.memory and tells_needs(t)]
    return min(known, key=lambda t: (t.card.generation() != cell.card.generation(), t.card.memory), default=None)


def find_needs(runs: Runs, cells: Sequence[Cell]) -> None:
    """For cards that do not fit. If no card fits, the program is run on the largest of them with more memory than any card has."""
    refused = [c for c in cells if c.verdict == REFUSED]
    if not any(c.fits for c in cells):
        firsts = {c.setting: c for c in sorted(refused, key=lambda c: c.card.memory) if not c.trial.number("asked")}
        runs.run([runs.trial(with_room(c.card), c.setting) for c in firsts.values()])
    for c in refused:
        c.roomy = roomy_of(runs, c) if not c.trial.number("asked") else None


def with_room(card: Card) -> Card:
    return replace(card, name=f"{card.name.partition('=')[0]}={LARGEST >> 40}TiB", memory=LARGEST)
