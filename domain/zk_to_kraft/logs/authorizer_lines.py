"""What is said of authorizers: of one that was left in a file, and of what nodes may do (Kafka 3.9)."""

import re
from collections.abc import Sequence

from domain.zk_to_kraft.logs.lines import Found, Told, first_of

OF_ZOOKEEPERS = Told(
    "authorizer-of-zookeeper",
    re.compile(r"\bat kafka\.security\.authorizer\.AclAuthorizer\.configure\b"),
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer in KRaft mode",
    "Its file names ZooKeeper's authorizer, which asks ZooKeeper also in KRaft mode: correct authorizer.class.name, and do not "
    "put zookeeper.connect there for it. Then start it.",
)
"""In the frames alone: without zookeeper.connect it ends in a NullPointerException, and with it in whatever ZooKeeper is at."""
STARTS_IN_KRAFT = re.compile(r"\bat kafka\.server\.(?:Broker|Controller)Server\.startup\b")


def of_zookeepers(lines: Sequence[str]) -> Found | None:
    """That a node in KRaft mode could not start with it; `None` where its frames do not say so."""
    left = next((found for line in lines if (found := first_of(line, (OF_ZOOKEEPERS,))) is not None), None)
    return left if any(map(STARTS_IN_KRAFT.search, lines)) else None
