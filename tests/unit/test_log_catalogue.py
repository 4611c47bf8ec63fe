"""The catalogue of log lines, of Kafka and of each kind of migration: what every pattern in it has to hold."""

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator, Mapping, Sequence

import pytest

from domain import diagnosis, zk_to_kraft
from domain.diagnosis.logs.catalogue import KAFKA, SNIPPET, Told
from domain.diagnosis.logs.connecting import KINDS
from domain.diagnosis.logs.endings import DEATHS, death_in
from domain.diagnosis.logs.lines import LASTING_WORDS, first_of, found_in
from domain.zk_to_kraft.migration_lines import MIGRATION

EVERY = (*KAFKA, *MIGRATION)
MOST_OF_A_FIX, MOST_OF_A_SENTENCE = 600, 25
"""Characters, and words."""
HARD_WORDS = re.compile(r"\b(?:nobody|somebody|anybody|whom|whoever|he|him|anew|mend(?:ed|s)?|at once|way back)\b", re.I)
"""Words that a tired operator reads twice."""
LONGEST = 0.2
"""Seconds for one pattern and a line of many thousand characters."""


def searched_with(told: Told) -> Sequence[Told]:
    """What its line is held against, in order."""
    if told.said == "connecting":
        return KINDS
    if told in DEATHS:
        return DEATHS
    topics = (*KAFKA.topics.values(), *MIGRATION.topics.values())
    own = next(topic for topic in topics if told in topic)
    return [one for one in own if one.said == told.said and (one is told or not one.instead_of)]


@pytest.mark.parametrize("told", EVERY, ids=lambda told: told.name)
def test_a_pattern_is_known_by_its_sample_and_says_what_to_do(told: Told) -> None:
    found = first_of(told.sample, [told] if told.instead_of else searched_with(told))
    assert found is not None
    assert found.told is told
    if told in DEATHS:
        assert (dead := death_in(("[x] INFO all is well", f"[2026-11-20 03:00:01,123] {told.sample}"))) is not None
        assert dead.told is told
    is_kept = told.is_lasting and not told.instead_of
    assert not is_kept or any(word in told.sample for word in LASTING_WORDS), "it would be lost from the tail of a long log"
    assert told.instead_of == "" or KAFKA[told.instead_of].said == told.said
    assert re.fullmatch(r"\d+(\.\d+)?(\.\.(\d+(\.\d+)?)?)?", told.releases)
    for text in (told.expected, told.fix, told.fix_of_member):
        assert SNIPPET.search(text) is None, "a snippet that is not there"
        assert len(text) <= MOST_OF_A_FIX
        assert all(len(sentence.split()) <= MOST_OF_A_SENTENCE for sentence in re.split(r"(?<=[.:;])\s", text))
        assert HARD_WORDS.search(text) is None
    for line in (told.sample * 40, "a/b:c[d]=e, (" * 2000, f"{told.sample.split()[0]} " * 3000):
        begun = time.process_time()
        told.pattern.search(line)
        assert time.process_time() - begun < LONGEST


def test_no_two_patterns_have_one_id() -> None:
    names = [told.name for told in EVERY]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("told", [told for told in EVERY if told.said == "running"], ids=lambda told: told.name)
def test_a_running_process_says_it_for_a_while(told: Told) -> None:
    said = [f"[2026-11-20 03:00:{second:02},123] {told.sample}" for second in range(1, told.least + 1)]
    assert [one.told for one in found_in(said, (told,))] == [told]


def patterns_in(value: object) -> Iterator[Told]:
    """Of a module's own values: patterns by themselves, and in tuples, sets and mappings."""
    if isinstance(value, Told):
        yield value
    elif isinstance(value, Mapping):
        yield from patterns_in((*value.keys(), *value.values()))
    elif isinstance(value, (tuple, list, set, frozenset)):
        for each in value:
            yield from patterns_in(each)


def test_no_pattern_is_left_out_of_every_search() -> None:
    """A pattern counts once a module names it, or takes its topic whole: nothing searches logs for the others."""
    rooms = [(room, f"{room.__name__}.") for room in (diagnosis, zk_to_kraft)]
    modules = [
        importlib.import_module(found.name) for room, name in rooms for found in pkgutil.walk_packages(room.__path__, name)
    ]
    used = {told.name for module in modules for value in list(vars(module).values()) for told in patterns_in(value)}
    assert [told.name for told in EVERY if told.name not in used] == []
