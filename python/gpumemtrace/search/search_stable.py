# SPDX-License-Identifier: Apache-2.0
"""The only rule for "stable": whether the peak of an unfinished run is also the peak of its remaining part, as far as the part so far can
show. A unit is a training step; if the program does not train, it is a second of work on the device.

Stable: the peak was last raised in the first half of the units, at least the wished number of units ago, and those units took long enough.
A rise that may recur has then been waited for as long as it took to occur. The units after the first must be stable by themselves: an
early peak, such as the first step's, may hide a leak below it.

Rising: three of the last four eighths of the units raised the peak. This finds a slow leak, one in bursts, and one with a garbage
collector. Such a run is followed three times as long, and longer if memory would run out within as many units again. A rise that leaves
room for a million more units does not matter: the run is stable, and the rise is reported."""
from __future__ import annotations

from typing import List, NamedTuple, Sequence, Tuple

NOT_YET, STABLE, RISES = "", "stable", "rises"
EIGHTHS = 8
LATEST, RISING = 4, 3  # of the eighths; of the latest
LONGER = 3  # a rise is followed this many times as long
FEWEST = 32  # units needed to detect a continuing rise
FAR = 1_000_000  # units
UNUSUAL, UNUSUAL_SECONDS = 3, 2  # times as long as the usual unit, and seconds


class Unit(NamedTuple):
    peak: int  # bytes, in this unit
    seconds: float


class Wish(NamedTuple):
    units: int  # to see after the latest rise, and after anything unusual
    seconds: float  # to look for, in units of usual length


class Stable(NamedTuple):
    says: str = NOT_YET
    risen: int = 0  # the unit that raised the peak last, from 1
    each: int = 0  # bytes by which a unit raises it, where that goes on; else 0
    usual: float = 0  # seconds of a unit


def is_unusual(seconds: float, usual: float) -> bool:
    """Is a unit, or the time since the last one ended, much longer than the others?"""
    return seconds > UNUSUAL * usual and seconds > UNUSUAL_SECONDS


def ends_after(count: int, each: int, room: int) -> int:
    """How many units there are until memory runs out, counted from the first; 0: it does not rise."""
    return count + room // each if each else 0


def matters(count: int, ends: int) -> bool:
    """Does a rise that ends then matter, or is it too slow?"""
    return bool(ends) and ends - count < FAR


def latest_rises(peaks: Sequence[int]) -> List[float]:
    """Rise of the peak per unit in each of the latest eighths, ascending."""
    most, before, begin, rises = 0, 0, 0, []
    for part in range(EIGHTHS):
        end = (part + 1) * len(peaks) // EIGHTHS
        most = max(most, max(peaks[begin:end], default=0))
        rises.append((most - before) / max(end - begin, 1))
        before, begin = most, end
    return sorted(rises[-LATEST:])


def last_rise(peaks: Sequence[int]) -> Tuple[int, int]:
    """Number of the last unit that exceeds all before it, from 1, and the peak of all."""
    most = max(peaks, default=0)
    return (peaks.index(most) + 1 if most else 0), most


def is_long_ago(risen: int, count: int, wish: Wish) -> bool:
    return count >= risen + wish.units and count >= 2 * risen


def judge_rise(peaks: Sequence[int], seconds: float, room: int, wish: Wish) -> Tuple[str, int]:
    """Decides about a peak that was raised recently; also how much a unit raises it."""
    count = len(peaks)
    if count < FEWEST:
        return NOT_YET, 0
    rises = latest_rises(peaks)
    if not rises[LATEST - RISING] > 0:
        return NOT_YET, 0
    each = int((rises[LATEST // 2 - 1] + rises[LATEST // 2]) / 2) or 1
    if room > FAR * rises[-1]:
        return STABLE, each
    follow = seconds >= LONGER * wish.seconds and count < room / each < FAR
    return RISES if follow else NOT_YET, each


def judge(units: Sequence[Unit], since: int, room: int, wish: Wish) -> Stable:
    """`since`: units before something unusual that this rule cannot see (memory ran out); `room`: bytes by which the peak may still rise
    on this card."""
    count = len(units)
    if not count:
        return Stable()
    usual = sorted(u.seconds for u in units)[count // 2]
    for i in range(count - 1, since - 1, -1):
        if is_unusual(units[i].seconds, usual):
            since = i + 1
            break
    peaks = [u.peak for u in units]
    risen, most = last_rise(peaks)
    seen = count * usual
    if seen < wish.seconds or count < since + wish.units:
        return Stable(NOT_YET, risen, 0, usual)
    if is_long_ago(risen, count, wish):
        peaks = peaks[risen:]
        again, later = last_rise(peaks)
        if is_long_ago(again, len(peaks), wish):
            return Stable(STABLE, risen, 0, usual)
        room += most - later
    says, each = judge_rise(peaks, seen, room, wish)
    return Stable(says, risen, each, usual)
