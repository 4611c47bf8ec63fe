"""PF45: a node could start with the files that the migration writes: its java is tried beside it."""

from collections.abc import Iterator

from domain.checks.file_characters import CODE, of_survey
from domain.checks.seen import Check, Surveyed, unverifiable
from domain.cluster import ControllerSpec, NodeSpec
from domain.decisions import Finding, Severity
from domain.diagnosis.machines.start_place import JavaTrial

EXPECTED = "a JVM starts there with Kafka's jars, and takes the file"
BY_HAND = "See yourself that its java starts, and that nobody has touched its jars."


def unstartable(trial: JavaTrial, name: str, node: NodeSpec) -> Finding | None:
    """Where the trial has failed."""
    if trial.refused is not None and trial.is_late:
        return Finding(
            code=CODE,
            object=f"{name} {node.properties_file}",
            observed=f"Kafka has not read the file that the stage {trial.stage} makes of it: {trial.refused}, and its java "
            "alone does",
            expected=EXPECTED,
            fix="Look whether what that file names answers there: a file that a config provider or a key store reads, on a "
            "mount that hangs. Where java itself hung only just then, that is over with the next try.",
        )
    if trial.refused is not None:
        return _refused(trial, name, node)
    if trial.failed is None:
        return None
    if trial.agents is not None:
        return Finding(
            code=CODE,
            object=name,
            observed=f"its JVM would end as it starts, because an agent of it does: {trial.agents}: {trial.failed}",
            expected=EXPECTED,
            fix="The process that runs goes on with what its agent read as it was started. Mend the file that is named, or put "
            "the one of before back (a file of passwords must be readable by its owner alone, who must be the user that "
            "starts the node: chown, chmod 600); where it is the agent itself, its jar or its options in the node's start "
            "command.",
        )
    tried = f"{trial.command} -cp '{node.class_path}' kafka.Kafka --version"
    return Finding(
        code=CODE,
        object=name,
        observed=f"a trial of its java failed, by the user and in the place from which it would be started: `{tried}`: "
        f"{trial.failed}",
        expected=EXPECTED,
        fix="Run that command there by hand, as the user of keeperless-activities, and mend what it says: a java that was "
        "removed or replaced, jars that are damaged or may not be read, a security program that does not allow them "
        "(fapolicyd, SELinux, AppArmor: their logs), a limit of memory or of threads.",
    )


def _refused(trial: JavaTrial, name: str, node: NodeSpec) -> Finding:
    """A controller's first file is made from its base file and from a broker's."""
    is_made = isinstance(node, ControllerSpec)
    base = f"{node.base_properties} or " if isinstance(node, ControllerSpec) and node.base_properties else ""
    source = f"{base}the first broker's file" if is_made else "that file"
    command = ", or in its start command" if trial.overridden else ""
    told = f", with the overrides of its start command ({', '.join(trial.overridden)})" if trial.overridden else ""
    what = f"the file that the stage {trial.stage} makes " + ("for it" if is_made else "of it")
    return Finding(
        code=CODE,
        object=f"{name} {node.properties_file}",
        observed=f"Kafka does not take {what}{told}: {trial.refused}",
        expected=EXPECTED,
        fix=f"Correct the key that it names in {source}{command}, and in whatever writes it. Then make a new plan.",
    )


def _tried(seen: Surveyed) -> Iterator[Finding]:
    for node in seen.spec.nodes:
        look, name = seen.node(node.id).look, seen.name(node.id)
        trials = look.trials if look is not None else ()
        why_not = seen.survey.why_missing(f"look at {name}") if look is None else trials and trials[0].untried
        if why_not:
            yield unverifiable(CODE, name, why_not, EXPECTED, BY_HAND, Severity.WARNING)
        found = [failed for trial in trials if (failed := unstartable(trial, name, node)) is not None]
        yield from found[:1]


CHECKS = (
    Check(
        code=CODE,
        holds="a JVM starts on each node with Kafka's jars, and takes its file as it will be at every stage; and Java reads in "
        "it what people read",
        because="a node that runs has all in memory that it needs, and does not show that it could not start again: its java "
        "was replaced or removed, a jar is damaged or may not be read any more, a security program blocks it, a limit leaves "
        "no room. Or its file has what Kafka takes in one mode and not in the next. The migration's restart would end a "
        "healthy node. And a controller's base file may have what Kafka takes from brokers only. Asked again right before "
        "each stop, of the file that is about to be written. In its text a `#` behind a value, a blank at its end, a byte "
        "order mark or a backslash that swallows the next line is a warning, if Kafka starts with it; an escape that Java "
        "cannot read is a blocker",
        source="brokers' files and `base_properties`, line by line; `kafka-storage.sh info` of each file that the migration "
        "will write, with the overrides of the node's start command, by the java of the node's process, or of its environment "
        "where it does not run yet, with the jars of `kafka_home` and its other class path, in a JVM of 64 MiB that opens no "
        "port of the node's and no log, with its JMX exporter, Jolokia or remote JMX at a port that is free, and no other "
        "agent: Kafka reads the file as at a start. Run by the node driver; the file goes through a pipe. A second of one CPU "
        "for each",
        unverifiable="the node's process is no plain `java … kafka.Kafka`, its command line may not be read, python3 "
        "cannot be run there, or its file has values from another config provider than Kafka's for files and directories (then "
        "only its java is tried): a warning",
        of_survey=(of_survey, _tried),
    ),
)
