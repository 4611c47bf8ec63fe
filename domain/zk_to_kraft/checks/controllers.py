"""PF06–PF08: where the controllers will live."""

import re
from collections import defaultdict
from collections.abc import Iterator

from domain.checks.check import Check, Seen, Surveyed, some, unverifiable
from domain.cluster import ControllerSpec
from domain.decisions import Finding, Severity
from domain.observed.observation import NodeDisk, StorageState
from domain.observed.survey import Directory

FEWEST = 3
IN_MEMORY = frozenset({"tmpfs", "ramfs"})
MIB = 1024 * 1024

HEAP_BASE_MIB, HEAP_MIB_PER_THOUSAND = 64, 4
"""Measured in rehearsals of the copy: 97 MiB with 20,000 partitions, 305 MiB with 100,000; ACLs counted as partitions."""
HEADROOM = 2
"""What is measured of a heap in use, and what it needs to breathe."""
DEFAULT_HEAP_MIB = 1024
"""`KAFKA_HEAP_OPTS` of Kafka's own start script (kafka-server-start.sh)."""
LEAST_DISK = 5 * 1024 * MIB
"""What the upstream guide asks of a controller."""
HEAP_OPTION = re.compile(r"-Xmx(\d+)([kKmMgG]?)")
UNITS = {"": 1 / MIB, "k": 1 / 1024, "m": 1.0, "g": 1024.0}


def _enough(seen: Surveyed) -> Iterator[Finding]:
    if len(seen.spec.controllers) < FEWEST:
        yield Finding(
            code="PF06",
            object="controllers",
            observed=f"{len(seen.spec.controllers)}",
            expected=f"{FEWEST} or more, an odd number",
            fix="Describe more controllers. With fewer, the loss of one stops the cluster, and the loss of its disk loses "
            "all metadata.",
        )


def _apart(seen: Surveyed) -> Iterator[Finding]:
    """One host or one rack must not hold a majority, and a controller is best not a broker's neighbour."""
    for what, places in (("host", _by(seen, "host")), ("rack", _by(seen, "rack"))):
        for place, names in places.items():
            if len(names) * 2 > len(seen.spec.controllers) > 1:
                yield Finding(
                    code="PF06",
                    severity=Severity.WARNING,
                    object=f"{what} {place}",
                    observed=f"{', '.join(names)}: a majority of the controllers",
                    expected=f"no {what} with a majority of them",
                    fix=f"Spread the controllers: if this {what} fails, the whole cluster stops.",
                )
    hosts = {broker.host for broker in seen.spec.brokers}
    beside = [seen.name(controller.id) for controller in seen.spec.controllers if controller.host in hosts]
    if beside:
        yield Finding(
            code="PF06",
            severity=Severity.WARNING,
            object=some(beside),
            observed="on the host of a broker",
            expected="hosts of their own",
            fix="Give controllers hosts of their own, or make sure that a busy broker leaves them disk and memory.",
        )


def _by(seen: Seen, attribute: str) -> dict[str, list[str]]:
    found = defaultdict(list)
    for controller in seen.spec.controllers:
        if getattr(controller, attribute) is not None:
            found[getattr(controller, attribute)].append(seen.name(controller.id))
    return found


def _persistent(seen: Surveyed) -> Iterator[Finding]:
    """Where the brokers' own data lies in memory too, the cluster is one to be thrown away."""
    is_thrown_away = all(map(_is_in_memory, _dirs(seen, [b.id for b in seen.spec.brokers])))
    for controller in seen.spec.controllers:
        for found in filter(_is_in_memory, _dirs(seen, [controller.id])):
            yield Finding(
                code="PF06",
                severity=Severity.WARNING if is_thrown_away else Severity.BLOCKER,
                object=f"{seen.name(controller.id)} {found.path}",
                observed=f"a file system of kind {found.filesystem}",
                expected="a disk",
                fix="Name a directory on a disk: the next reboot would lose the metadata.",
            )


def _dirs(seen: Surveyed, ids: list[int]) -> list[Directory]:
    looks = (seen.node(node_id).look for node_id in ids)
    return [found for look in looks if look is not None for found in look.log_dirs]


def _is_in_memory(found: Directory) -> bool:
    return found.filesystem in IN_MEMORY


def _empty(seen: Seen) -> Iterator[Finding]:
    for controller in seen.spec.controllers:
        disk = seen.disk(controller.id)
        used = [d.path for d in disk.log_dirs if d.state not in {StorageState.ABSENT, StorageState.EMPTY}]
        used += [controller.properties_file] if disk.file is not None else []
        for path in used:
            yield Finding(
                code="PF07",
                object=f"{seen.name(controller.id)} {path}",
                observed=f"holds data{_whose(disk, path)}",
                expected="absent or empty",
                fix="Name an empty directory: Keeperless never overwrites its content. Move the content away only if its "
                "ids are those of an earlier attempt of this controller, and no process has it open.",
            )


def _whose(disk: NodeDisk, path: str) -> str:
    found = next((d for d in disk.log_dirs if d.path == path and not (d.cluster_id is None and d.node_id is None)), None)
    return f": formatted for cluster {found.cluster_id}, node {found.node_id}" if found is not None else ""


def _base_files(seen: Surveyed) -> Iterator[Finding]:
    for controller in seen.spec.controllers:
        if seen.node(controller.id).lacks_base:
            yield Finding(
                code="PF07",
                object=f"{seen.name(controller.id)} {controller.base_properties}",
                observed="there is no such file",
                expected="the file that the controller's own file is made from",
                fix="Put it there, or omit base_properties: then the first broker's file is used.",
            )


def _free_place(seen: Surveyed) -> Iterator[Finding]:
    for controller in seen.spec.controllers:
        name, look = seen.name(controller.id), seen.node(controller.id).look
        if look is None:
            yield unverifiable(
                "PF07",
                name,
                seen.survey.why_missing(f"look at {name}"),
                "its directories can be written, and its port is free",
                "Make python3 available to the driver on the node. Or check it yourself and accept this finding.",
            )
            continue
        for directory in look.log_dirs:
            if not directory.is_writable:
                yield _unwritable(name, directory)
        if look.is_port_taken:
            yield Finding(
                code="PF07",
                object=f"{name} port {controller.port}",
                observed="somebody listens there",
                expected="a free port",
                fix="Give the controller another port, or stop the process that listens there.",
            )


def _unwritable(name: str, directory: Directory) -> Finding:
    return Finding(
        code="PF07",
        object=f"{name} {directory.path}",
        observed="the driver may not write there",
        expected="a directory in which the controller's storage can be created",
        fix="Create the directory for the user that runs the controller, or correct log_dirs.",
    )


def _size(seen: Surveyed) -> Iterator[Finding]:
    wanted = heap_mib(seen.kafka.partition_count + (seen.survey.zookeeper.acls if seen.survey.zookeeper else 0))
    for controller in seen.spec.controllers:
        name, given = seen.name(controller.id), _given_mib(controller)
        if given < wanted:
            yield Finding(
                code="PF08",
                severity=Severity.WARNING,
                object=f"{name} heap",
                observed=f"{given:g} MiB for {seen.kafka.partition_count} partitions",
                expected=f"{wanted} MiB or more",
                fix="Raise -Xmx in its start command or KAFKA_HEAP_OPTS: a controller that runs out of memory in the copy "
                "dies.",
            )
        for found in _dirs(seen, [controller.id]):
            if found.free < LEAST_DISK:
                yield Finding(
                    code="PF08",
                    severity=Severity.WARNING,
                    object=f"{name} {found.path}",
                    observed=f"{found.free // MIB} MiB free",
                    expected=f"{LEAST_DISK // MIB} MiB",
                    fix="Free some space: the quorum's log and its snapshots are stored there.",
                )


def heap_mib(partitions: int) -> int:
    """What a controller's heap should have, in MiB."""
    return HEAP_BASE_MIB + HEADROOM * HEAP_MIB_PER_THOUSAND * partitions // 1000


def _given_mib(controller: ControllerSpec) -> float:
    """By the last `-Xmx`, as Java takes it, in the order in which Kafka's scripts put them (kafka-run-class.sh)."""
    given = (controller.environment.get(name, "") for name in ("KAFKA_HEAP_OPTS", "KAFKA_OPTS"))
    texts = (*given, *controller.driver.service.start_command)
    found = [match for text in texts for match in HEAP_OPTION.finditer(text)]
    return int(found[-1][1]) * UNITS[found[-1][2].lower()] if found else DEFAULT_HEAP_MIB


CHECKS = (
    Check(
        code="PF06",
        holds="three or more controllers, an odd number, on disks, on hosts of their own and apart from the brokers",
        because="with fewer, one lost disk loses all metadata, and a quorum in one place fails with that place. The "
        "placement is only a warning: it is your decision",
        source="the cluster's specification; `/proc/self/mountinfo` of each node",
        of_survey=(_enough, _apart, _persistent),
    ),
    Check(
        code="PF07",
        holds="a controller's log directories and properties file are absent or empty and can be created, its port is free, "
        "and its base file exists if one is named",
        because="existing content would have to be overwritten, which Keeperless never does",
        source="the node's files; a connection to the controller's own port",
        unverifiable="python3 cannot be run on the controller's node",
        of_look=(_empty,),
        of_survey=(_base_files, _free_place),
    ),
    Check(
        code="PF08",
        severity=Severity.WARNING,
        holds="a controller has heap for all partitions and ACLs, and 5 GiB of disk",
        because="the copy needs it immediately: a controller that runs out of memory there dies, and so does the next one",
        source="number of partitions and ACLs; `-Xmx` of start command and environment; free space of the log directories",
        of_survey=(_size,),
    ),
)
