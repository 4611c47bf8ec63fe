"""PF44: what a broker's file says is what its process runs with. Of an edit that waits for the next restart nobody knows
whether a broker starts with it, and serves: it is a migration's restart that would put it into force. And no start command
sets a key that the migration writes: Kafka would take that value, and not the file's.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from domain.checks.seen import Check, Surveyed, some, unverifiable
from domain.cluster import ClusterSpec, NodeSpec, Role
from domain.configuration.properties import edit, parse
from domain.decisions import Finding, NodeStage, Severity
from domain.observed.survey import Override, StartedWith, Unapplied
from domain.redaction import is_shown, shown_name
from domain.zk_to_kraft.node_config import is_staged, node_file, stage_of

CODE = "PF44"
PART = "what brokers run with"
PROVIDED = "${"
"""Of a value that a config provider gives (KIP-421): the process has what it was resolved to."""
SAME_ID = {"node.id": "broker.id", "broker.id": "node.id"}
"""Of which Kafka makes the one of the other (KafkaConfig.populateSynonyms)."""
HIDDEN = "a value that is not shown"
EXPECTED = "a restart puts nothing into force but the migration's own lines"
FIX = (
    "Put those lines back as they were, in the file and in whatever writes it. If they are meant, restart {} yourself first, "
    "and see that it serves."
)
FIX_OF_MODE = (
    "Put those lines back as they were, in the file and in whatever writes it. Do not restart {} before: the file would start "
    "it in another mode, as PF37 says."
)


def unapplied(
    spec: ClusterSpec,
    node: NodeSpec,
    stage: NodeStage,
    file: Mapping[str, str],
    runs: StartedWith,
    overridden: Collection[str] = (),
) -> tuple[Unapplied, ...]:
    """What a restart into `stage` changes besides that stage's own lines. `overridden`: keys that the start command gives."""
    given = {key: file.get(key, "") if value is None else value for key, value in runs.values.items()}
    before = {key: value for key, value in given.items() if key in file or SAME_ID.get(key) not in file}
    old, new = (parse(node_file(edit("", lines), spec, node, stage)) for lines in (before, file))
    changed = (key for key in sorted({*old, *new} - {*overridden}) if not _is_same(old.get(key), new.get(key)))
    return tuple(
        Unapplied(key=_named(key, old, new), runs=_shown(key, old.get(key), runs), says=_shown(key, new.get(key), runs))
        for key in changed
        if PROVIDED not in new.get(key, "")
    )


def _is_same(one: str | None, other: str | None) -> bool:
    return one == other or (one is not None and other is not None and _plain(one) == _plain(other))


def _plain(value: str) -> list[str]:
    """Lists may have blanks, and truth any case."""
    parts = [part.strip() for part in value.split(",")]
    return [part.lower() if part.lower() in {"true", "false"} else part for part in parts]


def _named(key: str, old: Mapping[str, str], new: Mapping[str, str]) -> str:
    return shown_name(key, new.get(key) or old.get(key, ""))


def _shown(key: str, value: str | None, runs: StartedWith) -> str | None:
    return value if value is None or (key in runs.public and is_shown(key, value)) else HIDDEN


def differing(name: str, path: str, found: Collection[Unapplied]) -> Finding | None:
    """The finding about one broker; `None` where nothing differs."""
    if not found:
        return None
    told = some(f"{one.key}: runs with {one.runs or 'no such line'}, the file has {one.says or 'none'}" for one in found)
    return Finding(
        code=CODE,
        object=name,
        observed=f"{path} is not what its process was started with: {told}",
        expected=EXPECTED,
        fix=FIX.format(name),
    )


def outvoting(found: Iterable[Override], name: str, node: NodeSpec, role: Role) -> Iterator[Finding]:
    """A finding for each override of a key that some stage sets or removes."""
    for override in found:
        if not is_staged(override.key, role):
            continue
        where = "start_command of its specification" if override.is_specified else "whatever starts it"
        given = f"{override.key}={override.value}"
        yield Finding(
            code=CODE,
            object=f"{name} {override.key}",
            observed=f"the start command gives `--override {given}`, and Kafka takes that before {node.properties_file}: what "
            "the migration writes there for this key has no effect",
            expected="no override of a key that the migration sets or removes, nor of where the data is",
            fix=_without_override(override.key, where, name, node, role),
        )


def _without_override(key: str, where: str, name: str, node: NodeSpec, role: Role) -> str:
    plan = "Make a new plan: this finding is gone"
    if role is Role.CONTROLLER:
        return f"Take `--override {key}` out of {where}. The migration writes this key into {node.properties_file}. {plan}."
    return (
        f"Write the line {key} with this value into {node.properties_file}. Take `--override {key}` out of {where}. Restart "
        f"{name} and see that it serves. {plan}."
    )


def _outvoted(seen: Surveyed) -> Iterator[Finding]:
    for node in seen.spec.nodes:
        name, found = seen.name(node.id), seen.node(node.id)
        yield from outvoting(found.overrides, name, node, seen.spec.role(node.id))
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
        holds="what each broker's file says is what its process was started with, and no start command overrides a key that "
        "the migration writes",
        because="the migration restarts it: an edit that has waited in the file comes into force then, on one broker after the "
        "other, though it is not known yet whether a broker starts with it. An `--override` counts before the file: Kafka "
        "refuses to start with half of the new keys, or starts in another mode, or on other directories. Asked again right "
        "before each restart",
        source="brokers' files; DescribeConfigs of each broker: what it has from its file; `start_command` of the "
        "specification, and the command line of each node's process",
        unverifiable="the user of `client_properties` may not describe brokers' configs, or the command line of a process may "
        "not be read: a warning",
        of_survey=(_outvoted, _unapplied),
    ),
)
