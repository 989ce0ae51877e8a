# SPDX-License-Identifier: Apache-2.0
"""The simulated device's cards, as its library says them (simgpu/api/cards_said.c)."""
from __future__ import annotations

import ctypes
import os
from typing import Any, List, Optional

from .._answer import USAGE, Sentence
from .search_trial import Card

ROOM, NAME = 8192, 96  # bytes of all cards' lines, of a name
MISSING = ("libsimgpu.so was not found beside this program or in ../lib: install gpumemtrace again (a build with SIMGPU=no has no "
           "simulated device)")


def cards_of(library: Any, spec: Optional[str] = None) -> List[Card]:
    """The card of that name, or all of the table."""
    text = ctypes.create_string_buffer(ROOM)
    count = library.simgpuCards(None if spec is None else os.fsencode(spec), text, ctypes.c_size_t(ROOM))
    cards = []
    for line in text.value.decode().split("\n")[:count]:
        name, capability, code, processors, memory, context = line.split()
        major, minor = map(int, capability.split("."))
        cards.append(Card(spec or name, int(memory), int(context), major, minor, int(code), int(processors)))
    return cards


def find_cards(device: str, names: str, option: str) -> List[Card]:
    """Of "h100-80g,mycard=24GiB", or "all" of the table, as an option named them. device: the path of its library."""
    try:
        library = ctypes.CDLL(device)
        if names == "all":
            return cards_of(library)
        unknown = library.simgpuCardUnknown
    except (OSError, AttributeError):
        raise Sentence(MISSING) from None
    cards: List[Card] = []
    specs = (names[:-1] if names.endswith(",") else names).split(",")
    for i, spec in enumerate(specs):
        if not spec or len(spec) >= NAME:
            raise Sentence(f"{option} {','.join(specs[i:])}: give names with a comma between", USAGE)
        found = cards_of(library, spec)
        if not found:
            text = ctypes.create_string_buffer(ROOM)
            unknown(option.encode(), os.fsencode(spec), text, ctypes.c_size_t(ROOM))
            raise Sentence(text.value.decode(errors="replace"), USAGE)
        if any(card.name == spec for card in cards):
            raise Sentence(f"{option}: {spec} is named twice", USAGE)
        cards += found
    return cards
