"""Numbers over time as lines: all that a drawing needs, in pixels. Pure, and knows no number by its name."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from domain.records import Measured, Sample

WIDTH, HEIGHT = 640, 130
LEFT, RIGHT, TOP, BOTTOM = 8, 632, 8, 122
TIME = "%Y-%m-%d %H:%M:%S UTC"


@dataclass(frozen=True)
class Label:
    """A value at its height."""

    y: float
    text: str


@dataclass(frozen=True)
class Plot:
    """`path`: as SVG writes it, with a gap where the number was unknown. `text`: what the drawing shows, in words."""

    name: str
    path: str
    labels: tuple[Label, ...]
    begins: datetime
    ends: datetime
    latest: str
    text: str


@dataclass(frozen=True)
class _Point:
    at: datetime
    number: Measured


def plots_of(samples: Sequence[Sample]) -> list[Plot]:
    """One for each number, in the order in which they are named."""
    names = dict.fromkeys(number.name for sample in samples for number in sample.numbers)
    return [_plot(name, [_Point(s.at, n) for s in samples for n in s.numbers if n.name == name]) for name in names]


def _plot(name: str, points: Sequence[_Point]) -> Plot:
    known = [point.number for point in points if point.number.value is not None]
    begins, ends = points[0].at, points[-1].at
    states = sorted({number.value: number.says for number in known if number.says}.items())
    heights = _of_states(states) if states else _of_numbers(known)
    latest, span = _told(points[-1].number), f"from {begins:{TIME}} to {ends:{TIME}}"
    return Plot(
        name=name,
        path=" ".join(_path(points, begins, ends, heights)),
        labels=_labels(states, known, heights),
        begins=begins,
        ends=ends,
        latest=latest,
        text=f"{name} {span}, {len(points)} observations. {_course(points, known)} Newest: {latest}.",
    )


Heights = Callable[[float], float]


def _of_states(states: Sequence[tuple[float | None, str]]) -> Heights:
    """Each state has a height of its own, in the order of their numbers."""
    places = [value for value, _ in states]
    step = (BOTTOM - TOP) / max(1, len(places) - 1)
    return lambda value: BOTTOM - places.index(value) * step if len(places) > 1 else (TOP + BOTTOM) / 2


def _of_numbers(known: Sequence[Measured]) -> Heights:
    top = _top(known)
    return lambda value: BOTTOM - max(0.0, value) / top * (BOTTOM - TOP)


def _top(known: Sequence[Measured]) -> float:
    return max([1.0, *(number.value or 0.0 for number in known)])


def _labels(states: Sequence[tuple[float | None, str]], known: Sequence[Measured], heights: Heights) -> tuple[Label, ...]:
    if states:
        return tuple(Label(heights(value or 0.0), says) for value, says in states)
    return tuple(Label(heights(value), f"{value:g}") for value in (0.0, _top(known)))


def _path(points: Sequence[_Point], begins: datetime, ends: datetime, heights: Heights) -> Iterator[str]:
    """Steps: a number stands until the next observation. Each run of known ones is a line of its own."""
    width = (ends - begins).total_seconds() or 1.0

    def x(at: datetime) -> float:
        return LEFT + (at - begins).total_seconds() / width * (RIGHT - LEFT)

    for is_known, run in groupby(points, key=lambda point: point.number.value is not None):
        if is_known:
            first, *rest = run
            yield f"M{x(first.at):.1f} {heights(first.number.value or 0.0):.1f}h0.1"
            for point in rest:
                yield f"H{x(point.at):.1f}V{heights(point.number.value or 0.0):.1f}"


def _course(points: Sequence[_Point], known: Sequence[Measured]) -> str:
    """In one sentence: the states in the order in which they followed, or how far the number went."""
    if not known:
        return "It was never known."
    if known[0].says:
        states = [says for says, _ in groupby(_told(point.number) for point in points)]
        return f"In order: {', '.join(states)}."
    values = [number.value or 0.0 for number in known]
    return f"Lowest {min(values):g}, highest {max(values):g}."


def _told(number: Measured) -> str:
    if number.value is None:
        return "unknown"
    return number.says or f"{number.value:g}"
