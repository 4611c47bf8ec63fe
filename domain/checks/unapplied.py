"""PF44, the part that every kind of migration asks: what a restart would put into force that the migration did not write."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from domain.checks.check import some
from domain.cluster import NodeSpec, Role
from domain.configuration.properties import edit, parse
from domain.decisions import Finding
from domain.diagnosis.machines.start import Override
from domain.observed.survey import StartedWith, Unapplied
from domain.redaction import is_shown, shown_name

CODE = "PF44"
PART = "the values that brokers run with"
PROVIDED = "${"
"""Of a value that a config provider gives (KIP-421): the process has what it was resolved to."""
SAME_ID = {"node.id": "broker.id", "broker.id": "node.id"}
"""Of which Kafka makes the one of the other (KafkaConfig.populateSynonyms)."""
HIDDEN = "a value that is not shown"
EXPECTED = "a restart applies only the migration's own lines"
FIX = (
    "Put those lines back as they were, in the file and in whatever writes it. If they are meant, first restart {} yourself "
    "and check that it serves."
)


def unapplied(
    edited: Callable[[str], str], file: Mapping[str, str], runs: StartedWith, overridden: Collection[str] = ()
) -> tuple[Unapplied, ...]:
    """What a restart changes besides the migration's own lines. `edited`: the migration's own edit of a file. `overridden`:
    keys that the start command gives."""
    given = {key: file.get(key, "") if value is None else value for key, value in runs.values.items()}
    before = {key: value for key, value in given.items() if key in file or SAME_ID.get(key) not in file}
    old, new = (parse(edited(edit("", lines))) for lines in (before, file))
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


def outvoting(
    found: Iterable[Override], name: str, node: NodeSpec, role: Role, is_staged: Callable[[str, Role], bool]
) -> Iterator[Finding]:
    """A finding for each override of a key that some stage of the migration sets or removes."""
    for override in found:
        if not is_staged(override.key, role):
            continue
        where = "start_command of its specification" if override.is_specified else "whatever starts it"
        given = f"{override.key}={override.value}"
        yield Finding(
            code=CODE,
            object=f"{name} {override.key}",
            observed=f"the start command gives `--override {given}`, which Kafka prefers to {node.properties_file}: the line "
            "that the migration writes for this key has no effect",
            expected="no override of a key that the migration sets or removes, nor of the data directories",
            fix=_without_override(override.key, where, name, node, role),
        )


def _without_override(key: str, where: str, name: str, node: NodeSpec, role: Role) -> str:
    plan = "Make a new plan: this finding is gone"
    if role is Role.CONTROLLER:
        return f"Take `--override {key}` out of {where}. The migration writes this key into {node.properties_file}. {plan}."
    return (
        f"Write the line {key} with this value into {node.properties_file}. Take `--override {key}` out of {where}. Restart "
        f"{name} and check that it serves. {plan}."
    )
