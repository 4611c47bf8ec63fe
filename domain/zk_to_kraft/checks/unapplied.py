"""PF44: what a broker's file says is what its process runs with. Of an edit that waits for the next restart nobody knows
whether a broker starts with it, and serves: it is a migration's restart that would put it into force. And no start command
sets a key that the migration writes: Kafka would take that value, and not the file's.
"""

from collections.abc import Iterator

from domain.checks.check import Check, Surveyed, unverifiable
from domain.checks.unapplied import CODE, EXPECTED, PART, differing, outvoting
from domain.cluster import Role
from domain.decisions import Finding, Severity
from domain.zk_to_kraft.node_config import is_staged, stage_of
from domain.zk_to_kraft.steps import NodeStage

FIX_OF_MODE = (
    "Put those lines back as they were, in the file and in whatever writes it. Do not restart {} before that: the file "
    "would start it in another mode, as PF37 says."
)


def _outvoted(seen: Surveyed) -> Iterator[Finding]:
    for node in seen.spec.nodes:
        name, found = seen.name(node.id), seen.node(node.id)
        yield from outvoting(found.overrides, name, node, seen.spec.role(node.id), is_staged)
        if found.is_command_unread:
            why, expected = (
                "the command line of its process could not be read",
                "no override of a key that the migration writes",
            )
            fix = f"Run `tr '\\0' ' ' </proc/PID/cmdline` as the user of {name}, and look for --override."
            yield unverifiable(CODE, name, why, expected, fix, Severity.WARNING)


def _unapplied(seen: Surveyed) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        name, found = seen.name(broker.id), seen.node(broker.id).unapplied
        if found is None:
            why = seen.survey.why_missing(PART)
            fix = "Let the user of client_properties describe the cluster's configs (DescribeConfigs), or compare yourself and "
            yield unverifiable(CODE, name, why, EXPECTED, f"{fix}accept this finding.", Severity.WARNING)
        elif (finding := differing(name, broker.properties_file, found)) is not None:
            is_of_mode = stage_of(seen.properties(broker.id), Role.BROKER) is not NodeStage.ZOOKEEPER
            yield finding.model_copy(update={"fix": FIX_OF_MODE.format(name)}) if is_of_mode else finding


CHECKS = (
    Check(
        code=CODE,
        holds="each broker's process was started with what its file says, and no start command overrides a key that the "
        "migration writes",
        because="the migration restarts the broker and so applies every pending edit, on one broker after another, although "
        "it is unknown whether a broker starts with it. Kafka prefers an `--override` to the file: it refuses to "
        "start with half of the new keys, or starts in another mode, or on other directories. Checked again right "
        "before each restart",
        source="brokers' files; DescribeConfigs of each broker for the values from its file; `start_command` of the "
        "specification, and the command line of each node's process",
        unverifiable="the user of `client_properties` may not describe brokers' configs, or the command line of a process "
        "cannot be read: a warning",
        of_survey=(_outvoted, _unapplied),
    ),
)
