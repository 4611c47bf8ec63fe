"""What is said of authorizers: of one that was left in a file, and of what nodes may do (Kafka 3.9)."""

import re
from collections.abc import Sequence
from dataclasses import replace

from domain.diagnosis.logs.lines import FRAME, Found, Told, all_found, current, first_of

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
    frames = [line for line in lines if FRAME.match(line)]
    left = next((found for line in frames if (found := first_of(line, (OF_ZOOKEEPERS,))) is not None), None)
    return left if any(map(STARTS_IN_KRAFT.search, frames)) else None


GIVE_BACK = (
    "An ACL was removed, or that principal is another one since a certificate or a login was renewed: compare its subject with "
    "the one before (ssl.principal.mapping.rules). Give it back: kafka-acls.sh --add --allow-principal PRINCIPAL --operation "
    "ClusterAction --cluster (with --bootstrap-controller where the brokers may forward nothing), or put it into super.users, "
    "which takes effect with a restart of whoever refuses. It goes on by itself: restart nobody else for it."
)
CLUSTER_ACTION_REFUSED = Told(
    "cluster-action-refused",
    re.compile(
        r"sent a heartbeat request but received error CLUSTER_AUTHORIZATION_FAILED|"
        r"Broker is not authorized to send AlterPartition to controller"
    ),
    "brokers that may do ClusterAction at the controllers",
    "The controllers refuse this broker's principal ClusterAction; kafka-authorizer.log of the active one names it. "
    f"{GIVE_BACK}",
)
OF_NODES = (
    "UPDATE_METADATA|LEADER_AND_ISR|STOP_REPLICA|BROKER_HEARTBEAT|BROKER_REGISTRATION|CONTROLLER_REGISTRATION|ALTER_PARTITION|"
    "ALLOCATE_PRODUCER_IDS|ASSIGN_REPLICAS_TO_DIRS|CONTROLLED_SHUTDOWN|ENVELOPE|FETCH|FETCH_SNAPSHOT|VOTE|BEGIN_QUORUM_EPOCH|"
    "END_QUORUM_EPOCH"
)
"""What only nodes ask for: a client that may not do what it asks for is its own affair."""
OF_A_NODE = re.compile(rf" for request = (?i:{OF_NODES.replace('_', '_?')}) with |\(apiKey=(?:{OF_NODES}),")
NODE_REFUSED = Told(
    "node-refused",
    re.compile(
        r"Principal = .{1,200}? is Denied (?:Operation = ClusterAction|operation = CLUSTER_ACTION) from host = \S{1,60}|"
        r"ClusterAuthorizationException: Request Request\(processor=\d+, connectionId=[^\s,]{1,120}(?=, session=)"
    ),
    "nodes that may do ClusterAction at each other",
    "Only where that principal and host are one of this cluster's nodes, for ClusterAction lets anybody read everything: its "
    f"authorizer refuses that to another node, and it hears of no change from there. {GIVE_BACK}",
)
AS_WHOM = re.compile(r", (principal=.{1,200}?), listenerName=")


def refused_node_in(lines: Sequence[str]) -> Found | None:
    """The last of the nodes that this one does not let do what they are to."""
    refused = [found for found in all_found(current(lines), (NODE_REFUSED,)) if OF_A_NODE.search(found.block[0])]
    if not refused:
        return None
    principal = AS_WHOM.search(refused[-1].block[0])
    return replace(refused[-1], quote=f"{refused[-1].quote}, {principal[1]}") if principal else refused[-1]
