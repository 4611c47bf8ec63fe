"""Which of a snapshot's nodes are what, for many at once: nearly all are partitions and their states, and say so by the ends
of their paths. A node's path is only looked at by itself where that does not settle it.
"""

from dataclasses import dataclass

import numpy as np

from spark.codec.octets import Positions, stands_at
from spark.codec.zookeeper_snapshot import Flags, Nodes

STATE, PARTITIONS = b"/state", b"/partitions/"
MOST_DIGITS = 10


@dataclass(frozen=True)
class Regions:
    """Indexes of nodes. `others`: below the chroot and outside of all topics. `below`: flags those within a topic."""

    topics: Positions
    states: Positions
    others: Positions
    below: Flags


def topics_folder(chroot: str) -> bytes:
    return f"{chroot}/brokers/topics/".encode()


def regions_of(nodes: Nodes, chroot: str) -> Regions:
    folder = topics_folder(chroot)
    is_in_topics = starts_with(nodes, folder)
    shortest = len(folder) + len(b"t" + PARTITIONS + b"0" + STATE)
    is_state = is_in_topics & (nodes.path_length >= shortest) & _ends_with_state(nodes)
    holds_state = np.append(is_state[1:] & (nodes.path_length[1:] == nodes.path_length[:-1] + len(STATE)), False)
    unsettled = np.flatnonzero(is_in_topics & ~is_state & ~holds_state)
    names = nodes.taken(unsettled).paths()
    topics = unsettled[[b"/" not in name[len(folder) :] for name in names]] if names else unsettled
    below = is_in_topics.copy()
    below[topics] = False
    is_ours = starts_with(nodes, f"{chroot}/".encode()) if chroot else np.ones(len(nodes), np.bool_)
    return Regions(topics, np.flatnonzero(is_state), np.flatnonzero(is_ours & ~is_in_topics), below)


def starts_with(nodes: Nodes, prefix: bytes) -> Flags:
    """And goes on after it."""
    found: Flags = nodes.path_length > len(prefix)
    longer = np.flatnonzero(found)
    found[longer] = stands_at(nodes.window, nodes.path[longer], prefix)
    return found


def partition_numbers(nodes: Nodes, topic_lengths: Positions) -> Positions:
    """Of states, whose topics' paths have these lengths; -1 for what only looks like the state of a partition."""
    ends = nodes.path + nodes.path_length - len(STATE)
    numbers, digits = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
    is_open = np.ones(len(nodes), np.bool_)
    for place in range(MOST_DIGITS):
        digit = nodes.window[ends - 1 - place].astype(np.int64) - ord("0")
        is_open &= (digit >= 0) & (digit <= 9)
        if not is_open.any():
            break
        numbers += np.where(is_open, digit * 10**place, 0)
        digits += is_open
    is_place = nodes.path_length == topic_lengths + len(PARTITIONS) + digits + len(STATE)
    is_right = is_place & (digits > 0) & stands_at(nodes.window, np.maximum(ends - digits - len(PARTITIONS), 0), PARTITIONS)
    return np.where(is_right, numbers, -1)


def _ends_with_state(nodes: Nodes) -> Flags:
    found: Flags = nodes.path_length >= len(STATE)
    longer = np.flatnonzero(found)
    found[longer] = stands_at(nodes.window, (nodes.path + nodes.path_length - len(STATE))[longer], STATE)
    return found
