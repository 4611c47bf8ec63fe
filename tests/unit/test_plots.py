"""Numbers over time as lines and as words."""

import re
from datetime import UTC, datetime, timedelta

from api.pages.plots import BOTTOM, LEFT, RIGHT, TOP, plots_of
from domain.records import Measured, Sample

BEGIN = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)


def samples(*values: float | None, says: dict[float, str] | None = None) -> list[Sample]:
    words = says or {}
    return [
        Sample(at=BEGIN + timedelta(minutes=n), numbers=(Measured(name="n", value=v, says=words.get(v or 0, "")),))
        for n, v in enumerate(values)
    ]


def points_of(path: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", path)]


def test_nothing_is_drawn_of_no_sample() -> None:
    assert plots_of([]) == []


def test_a_number_goes_from_edge_to_edge() -> None:
    [plot] = plots_of(samples(0, 50, 100))
    assert plot.path == f"M{LEFT:.1f} {BOTTOM:.1f}h0.1 H{(LEFT + RIGHT) / 2:.1f}V65.0 H{RIGHT:.1f}V{TOP:.1f}"
    assert [(label.text, label.y) for label in plot.labels] == [("0", BOTTOM), ("100", TOP)]
    assert "Lowest 0, highest 100. Newest: 100." in plot.text


def test_what_was_unknown_is_a_gap() -> None:
    [plot] = plots_of(samples(1, None, 3, None))
    assert plot.path.count("M") == 2
    assert plot.latest == "unknown"
    assert plot.text.endswith("Newest: unknown.")


def test_a_number_never_known_is_said_so() -> None:
    [plot] = plots_of(samples(None, None))
    assert plot.path == ""
    assert "It was never known." in plot.text


def test_states_have_heights_of_their_own_and_are_told_in_order() -> None:
    names = {4.0: "ZK", 2.0: "PRE_MIGRATION", 1.0: "MIGRATION"}
    [plot] = plots_of(samples(4, 4, 2, None, 1, says=names))
    assert [label.text for label in plot.labels] == ["MIGRATION", "PRE_MIGRATION", "ZK"]
    assert [label.y for label in plot.labels] == [BOTTOM, (TOP + BOTTOM) / 2, TOP]
    assert "In order: ZK, PRE_MIGRATION, unknown, MIGRATION." in plot.text


def test_all_stays_within_the_frame() -> None:
    for values in ((5.0,), (0.0, 0.0), (-1.0, 7.0, 3.0), (1e12, 1.0)):
        [plot] = plots_of(samples(*values))
        numbers = points_of(plot.path.replace("h0.1", ""))
        assert all(TOP <= number <= RIGHT for number in numbers), plot.path
