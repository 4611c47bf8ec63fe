"""Znodes that a strict parser refuses, as candidates for what stops the copy: with what each is expected to do to it."""

import re

from activities.observing.zookeeper_view import BROKER_CONFIGS, BROKER_IDS, TOPIC_CONFIGS, TOPICS
from activities.ports.zookeeper import ZooKeeperTree
from activities.zk_to_kraft.poison import SLASH, poisoned_znodes
from domain.observed.observation import Suspect
from domain.zk_to_kraft.rehearsal.trials import Candidate, Effect

ALL = 1_000_000
NO_QUOTA = "is not a quota"
ENCRYPTED = b"encryptedPassword:"
MISFIT = "has an encrypted password that password.encoder.secret does not open"
DETAIL = re.compile(r"\d+|'[^']*'|such as .*")
"""What differs between two znodes with the same fault."""


async def candidates_in(tree: ZooKeeperTree) -> tuple[Candidate, ...]:
    """What a strict parser refuses, and what none can judge."""
    return (*(candidate_of(suspect) for suspect in await poisoned_znodes(tree, ALL)), *await encrypted_in(tree))


async def encrypted_in(tree: ZooKeeperTree) -> tuple[Candidate, ...]:
    """Broker configs with passwords: whether the encoder's secret fits, only Kafka's own copy can tell."""
    paths = [f"{BROKER_CONFIGS}/{name}" for name in await tree.children(BROKER_CONFIGS) or ()]
    znodes = await tree.get_many(paths)
    return tuple(
        Candidate(path, MISFIT, Effect.ABORTS, path, is_guess=True)
        for path, znode in zip(paths, znodes, strict=True)
        if znode is not None and ENCRYPTED in znode.data
    )


def candidate_of(suspect: Suspect) -> Candidate:
    expected = expected_of(suspect)
    place = "/".join(suspect.what.split("/")[1:3])
    return Candidate(suspect.what, suspect.why, expected, f"{place}: {DETAIL.sub('…', suspect.why)}")


def expected_of(suspect: Suspect) -> Effect:
    """By hand, on Kafka 3.9.2: only a trial tells, this says what to try first."""
    path = suspect.what
    if path.startswith(TOPICS) and path.endswith("/state"):
        return Effect.LOSES
    if path.startswith((BROKER_IDS, TOPICS)):
        return Effect.BLOCKS
    if SLASH in suspect.why or NO_QUOTA in suspect.why:
        return Effect.HANGS
    is_lenient = "JSON" in suspect.why or "that Kafka" in suspect.why or path.startswith(TOPIC_CONFIGS)
    return Effect.LOSES if is_lenient else Effect.ABORTS
