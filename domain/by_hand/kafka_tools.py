"""What a runbook asks Kafka and ZooKeeper, with their own tools. Every one is run from the first broker's installation.

Clients that need more than an address take it from `$CLIENT_PROPERTIES`, a properties file of Kafka's Java client; ZooKeeper's
digest identity comes from where the specification says, and is never printed.
"""

import re
from collections.abc import Sequence
from shlex import quote

from domain.by_hand.shell import java
from domain.cluster import ClusterSpec, ControllerSpec

ZOOKEEPER_SHELL = "org.apache.zookeeper.ZooKeeperMain"
TOPICS_TOOL = "org.apache.kafka.tools.TopicCommand"


def zookeeper(spec: ClusterSpec, command: str) -> str:
    """One command of ZooKeeper's shell, e.g. `get /controller`."""
    if spec.ensemble.digest_auth is None:
        return f"{_shell(spec)} {command}"
    return f'{{ {_add_identity(spec)}echo "{command}"; }} | {_shell(spec)}'


PLAIN_PATH = re.compile(r"/[\w./:=@%+,*<>-]*")


def is_plain(path: str) -> bool:
    """Whether it is a znode's path, and nothing in it means anything to a shell between double quotes."""
    return PLAIN_PATH.fullmatch(path) is not None


def look_at(spec: ClusterSpec, path: str) -> str:
    """What a znode holds, whose path is plain."""
    return zookeeper(spec, f"get {path if spec.ensemble.digest_auth is not None else quote(path)}")


def _shell(spec: ClusterSpec) -> str:
    return java(spec.brokers[0], ZOOKEEPER_SHELL, "-server", quote(spec.ensemble.connect))


def in_one_session(spec: ClusterSpec, variable: str) -> str:
    """Commands of ZooKeeper's shell, one a line of a shell variable."""
    return f'{{ {_add_identity(spec)}echo "${variable}"; }} | {quiet(_shell(spec))}'


def _add_identity(spec: ClusterSpec) -> str:
    """As the session's first command, where an identity is needed."""
    reference = spec.ensemble.digest_auth
    return f"printf 'addauth digest %s\\n' {_secret(reference)}; " if reference is not None else ""


def quiet(command: str) -> str:
    return f"{command} 2>/dev/null"


def is_zookeepers(spec: ClusterSpec) -> str:
    """`/controller` is ephemeral: a broker's session owns it."""
    return quiet(zookeeper(spec, "stat /controller")) + " | grep -q 'ephemeralOwner = 0x.*[1-9a-f]'"


def is_krafts(spec: ClusterSpec) -> str:
    """`/controller` is persistent: a KRaft controller has claimed it."""
    return quiet(zookeeper(spec, "stat /controller")) + " | grep -qx 'ephemeralOwner = 0x0'"


def is_absent(spec: ClusterSpec, name: str) -> str:
    """There is no such znode at the root. Nobody answering is not absence: the root has to be listed."""
    listed = quiet(zookeeper(spec, "ls /"))
    return f"{listed} | tail -n 1 | awk '/^\\[/ {{ listed = !/[[ ]{name}[],]/ }} END {{ exit !listed }}'"


def is_registered(spec: ClusterSpec, broker_id: int) -> str:
    """The broker has a session in ZooKeeper: it runs in ZooKeeper or hybrid mode."""
    listed = quiet(zookeeper(spec, "ls /brokers/ids"))
    return f"{listed} | tail -n 1 | tr -d '[] ' | tr , '\\n' | grep -qx {broker_id}"


def copied_offset(spec: ClusterSpec) -> str:
    """Prints the offset in `/migration`: how much of the quorum's log ZooKeeper has. -1 before the copy is complete."""
    return quiet(zookeeper(spec, "get /migration")) + " | " + _number("kraft_metadata_offset")


def largest_epoch(spec: ClusterSpec) -> str:
    """Prints the largest controller epoch that ZooKeeper knows; fails where it could not read all.

    Those are `/controller_epoch`, that of KRaft's claim, and that of every partition's state. One session reads all states.
    """
    listed = quiet(zookeeper(spec, "ls -R /brokers/topics"))
    gets = "states=$(echo \"$listed\" | grep '/partitions/.*/state$' | sed 's/^/get /')"
    read = f"epochs=$({in_one_session(spec, 'states')} | {_number('controller_epoch')})"
    is_whole = '[ "$(echo "$states" | wc -l)" = "$(echo "$epochs" | wc -l)" ]'
    own = quiet(zookeeper(spec, "get /controller_epoch")) + " | grep -x '[0-9][0-9]*'"
    of_claim = quiet(zookeeper(spec, "get /controller")) + " | " + _number("kraftControllerEpoch")
    largest = f'{{ {own} && {of_claim} && echo "$epochs"; }} | sort -n | tail -n 1'
    return f'listed=$({listed}) && [ -n "$listed" ] && {{ {gets}; {read}; {is_whole}; }} && {largest}'


def quorum(spec: ClusterSpec, what: str = "--status") -> str:
    """`describe --status` or `--replication` of the controllers' quorum."""
    servers = ",".join(f"{c.host}:{c.port}" for c in spec.controllers)
    is_plain = spec.controller_security_protocol == "PLAINTEXT"
    words = ("--bootstrap-controller", quote(servers), *_client(is_plain), "describe", what)
    return java(spec.brokers[0], "org.apache.kafka.tools.MetadataQuorumCommand", *words)


def log_end(spec: ClusterSpec) -> str:
    """Prints how far the quorum's log is committed."""
    return quiet(quorum(spec)) + " | sed -n 's/^HighWatermark:[^0-9]*\\([0-9]*\\).*/\\1/p'"


def is_copy_current(spec: ClusterSpec, distance: int) -> str:
    """ZooKeeper has all but the last few records of the quorum's log. (An idle quorum writes two a second.)"""
    numbers = f"end=$({log_end(spec)}) && copied=$({copied_offset(spec)})"
    return f'{numbers} && [ -n "$copied" ] && [ "$copied" -gt 0 ] && [ $((end - copied)) -le {distance} ]'


def is_in_sync(spec: ClusterSpec) -> str:
    """No partition lacks a replica."""
    return _lists_none(spec, "--under-replicated-partitions")


def is_available(spec: ClusterSpec) -> str:
    """No partition lacks a leader."""
    return _lists_none(spec, "--unavailable-partitions")


def delete_topic(spec: ClusterSpec, name: str) -> str:
    return java(spec.brokers[0], TOPICS_TOOL, *_brokers(spec), "--delete", "--topic", quote(name))


def delete_acl(spec: ClusterSpec, group: str) -> str:
    """The ACL that denies the principal of this name to read the group of this name."""
    about = ("--deny-principal", quote(f"User:{group}"), "--operation", "Read", "--group", quote(group))
    return java(spec.brokers[0], "kafka.admin.AclCommand", *_brokers(spec), "--remove", "--force", *about)


def delete_user(spec: ClusterSpec, name: str) -> str:
    """A user's SCRAM credential, and with it the user."""
    about = ("--entity-type", "users", "--entity-name", quote(name), "--delete-config", "SCRAM-SHA-512")
    return java(spec.brokers[0], "kafka.admin.ConfigCommand", *_brokers(spec), "--alter", *about)


def _lists_none(spec: ClusterSpec, which: str) -> str:
    """A tool that fails prints nothing either: its exit code counts first."""
    topics = java(spec.brokers[0], TOPICS_TOOL, *_brokers(spec), "--describe", which)
    return f'lacking=$({quiet(topics)}) && [ -z "$lacking" ]'


def is_listed(spec: ClusterSpec, broker_id: int) -> str:
    """The brokers name this one as alive."""
    versions = java(spec.brokers[0], "kafka.admin.BrokerApiVersionsCommand", *_brokers(spec))
    return quiet(versions) + f" | grep -q '(id: {broker_id} '"


def records(controller: ControllerSpec, directories: Sequence[str]) -> str:
    """Prints the records in a controller's copy of the quorum's log, oldest first."""
    logs = " ".join(f"{quote(f'{path}/__cluster_metadata-0')}/*.log" for path in directories)
    return f'for log in {logs}; do [ ! -e "$log" ] || {decoder(controller)} "$log" 2>/dev/null; done'


def decoder(controller: ControllerSpec) -> str:
    """Prints what is in a file of the quorum's log, whose name follows."""
    return java(controller, "kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files")


def has_nothing_beyond(spec: ClusterSpec, controller: ControllerSpec, directories: Sequence[str]) -> str:
    """Prints what a controller's log has and ZooKeeper does not, by the offset in `/migration`.

    Succeeds where there is nothing, and the log could be read.
    """
    is_beyond = "at + 0 > copied + 0 && !/NO_OP_RECORD/"
    look = f'{{ at = $0; sub(/.*offset: /, "", at); if ({is_beyond}) {{ print; lacking = 1 }} }} END {{ exit lacking || !NR }}'
    written = f"{{ {records(controller, directories)}; }} | grep payload:"
    return f'copied=$({copied_offset(spec)}); [ -n "$copied" ] && {written} | awk -v copied="$copied" {quote(look)}'


def _number(name: str) -> str:
    return f"sed -n 's/.*\"{name}\": *\\(-\\{{0,1\\}}[0-9][0-9]*\\).*/\\1/p'"


def _brokers(spec: ClusterSpec) -> tuple[str, ...]:
    """How a tool reaches the brokers."""
    servers = quote(",".join(spec.kafka.bootstrap_servers))
    return ("--bootstrap-server", servers, *_client(spec.kafka.client_properties is None))


def _client(is_plain: bool) -> tuple[str, ...]:
    return () if is_plain else ("--command-config", '"${CLIENT_PROPERTIES:?a properties file of Kafka clients}"')


def _secret(reference: str) -> str:
    """A reference as a shell word: its value appears in no command."""
    kind, _, where = reference.partition(":")
    return f'"${{{where}:?user:password of ZooKeeper}}"' if kind == "env" else f'"$(cat {quote(where)})"'
