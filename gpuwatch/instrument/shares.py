"""What a save adds up to over the lanes that run it together, as far as that is known before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gpuwatch.instrument.subject import Subject
from gpuwatch.instrument.warp_access import SECTOR_BYTES
from gpuwatch.probe.model import Binary, Constant, Expression, Helper

_MOST = 1 << 10
_OF_EACH_LANE = frozenset({"ld", "st"})


class Share(NamedTuple):
    """`together` in all, and `each` for every lane."""

    together: int
    each: int


NOTHING = Share(0, 0)


@dataclass(frozen=True, slots=True)
class Place:
    """What is known of where a save is: the instruction that it is about, as far as that was
    read, and whether that is a branch that all lanes take alike."""

    subject: Subject | None = None
    alike: bool = False
    guessed: bool = False
    """Whether the subject is not read yet: most accesses move a number of bytes that is known."""


def share_of(value: Expression, place: Place) -> Share | None:
    """None where it shows only as it runs."""
    match value:
        case Constant(number) if isinstance(number, int) and 0 <= number <= _MOST:
            return Share(0, number)
        case Helper("leads"):
            return Share(1, 0)
        case Helper("splits") if place.alike:
            return NOTHING
        case Helper("bytes") if place.subject is not None and _moves_all(place.subject):
            return Share(0, place.subject.bytes or 0)
        case Helper("bytes") if place.guessed:
            return Share(0, 1)
        case Helper("sectors") if place.subject is not None:
            return _sectors(place.subject)
        case Binary("and", left, right):
            if NOTHING in (share_of(left, place), share_of(right, place)):
                return NOTHING
    return None


def same_in_all_lanes(value: Expression, place: Place) -> bool:
    """Whether a value that shows only as it runs is the same in all of them."""
    return place.alike and value == Helper("taken")


def _moves_all(subject: Subject) -> bool:
    """Whether each lane moves a number of bytes that is known."""
    return bool(subject.bytes) and subject.parts.keys().isdisjoint(("size", "ignored"))


def _sectors(subject: Subject) -> Share | None:
    """Of addresses that are equal, or a sector and more apart."""
    plain = subject.opcode.partition(".")[0] in _OF_EACH_LANE and "base" in subject.parts
    if not plain or subject.space != "global" or not _moves_all(subject):
        return None
    if subject.stride is None:
        return None
    if subject.stride == 0:
        return Share(1, 0)
    return Share(0, 1) if abs(subject.stride) >= SECTOR_BYTES else None
