"""What a node cannot reach, or is turned away by: by its own log, and by that of the servers of the ensemble that serve."""

from collections.abc import Sequence

from domain.diagnosis.causes.hints import Serving
from domain.diagnosis.logs.complaints import said_in
from domain.diagnosis.logs.connecting import (
    CLUSTER_REFUSED,
    LOGIN_FAILED,
    PROTOCOL_DIFFERS,
    TLS_FAILED,
    TURNED_AWAY,
    refusals_in,
    refused_node_in,
    unconnected_in,
)
from domain.diagnosis.logs.lines import Found, current
from domain.diagnosis.logs.members import turned_away_by
from domain.zk_to_kraft.causes.case import Looked

OF_THE_ENSEMBLE = frozenset({"zookeeper-unreachable", TURNED_AWAY.name})
"""Deaths that a server of ZooKeeper may know more of."""


def word_of_servers(looked: Looked) -> tuple[str, str]:
    """What a member that serves has against somebody, as a further sentence, and what to do; empty where they say nothing."""
    for address, lines in looked.hints.server_logs.items():
        if looked.hints.servers.get(address) is Serving.YES and (found := turned_away_by(lines)) is not None:
            return f". The log of zookeeper {address}, which serves, says: {found.quote}", found.told.fix
    return "", ""


TO_A_NODE = "Error connecting to node "
"""And not to ZooKeeper, which a controller asks as well."""
KEEP_APART = (CLUSTER_REFUSED, PROTOCOL_DIFFERS, TLS_FAILED, LOGIN_FAILED)


def kept_apart(lines: Sequence[str]) -> Found | None:
    """What keeps a controller from the others: what those say to it, or it to them, or that it does not get there."""
    refused, unreached = next(iter(refusals_in(lines, KEEP_APART)), None), cut_off(lines)
    is_of_a_node = unreached is not None and TO_A_NODE in unreached.quote
    return refused or refused_node_in(lines) or (unreached if is_of_a_node else None)


def cut_off(lines: Sequence[str]) -> Found | None:
    """What keeps one that runs from whom it asks."""
    return unconnected_in(list(said_in(current(lines))))
