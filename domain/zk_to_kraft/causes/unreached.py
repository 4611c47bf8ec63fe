"""What a node cannot reach: by its own log, and by that of the servers of the ensemble that serve."""

from collections.abc import Sequence

from domain.zk_to_kraft.causes.case import Looked
from domain.zk_to_kraft.causes.hints import Serving
from domain.zk_to_kraft.logs.lines import Found, current
from domain.zk_to_kraft.logs.said import said_in
from domain.zk_to_kraft.logs.unconnected import TURNED_AWAY, unconnected_in
from domain.zk_to_kraft.logs.zookeeper_deaths import turned_away_by

OF_THE_ENSEMBLE = frozenset({"zookeeper-unreachable", TURNED_AWAY.name})
"""Deaths that a server of ZooKeeper may know more of."""


def word_of_servers(looked: Looked) -> tuple[str, str]:
    """What a member that serves has against somebody, as a further sentence, and what to do; empty where they say nothing."""
    for address, lines in looked.hints.server_logs.items():
        if looked.hints.servers.get(address) is Serving.YES and (found := turned_away_by(lines)) is not None:
            return f". The log of zookeeper {address}, which serves, says: {found.quote}", found.told.fix
    return "", ""


def cut_off(lines: Sequence[str]) -> Found | None:
    """What keeps one that runs from whom it asks."""
    return unconnected_in(list(said_in(current(lines))))
