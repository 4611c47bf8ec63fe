"""PF45: a node that runs could start again: its java, with Kafka's jars, is tried beside it."""

from collections.abc import Iterator

from domain.decisions import Finding, Severity
from domain.start_place import JavaTrial
from domain.zk_to_kraft.checks.seen import Check, Surveyed, unverifiable

CODE = "PF45"
EXPECTED = "a JVM starts there with Kafka's jars, and tells its version"
BY_HAND = "See yourself that its java starts, and that nobody has touched its jars."


def unstartable(trial: JavaTrial, name: str, kafka_home: str) -> Finding | None:
    """Where the trial has failed."""
    if trial.failed is None:
        return None
    tried = f"{trial.command} -cp '{kafka_home}/libs/*' kafka.Kafka --version"
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


def _tried(seen: Surveyed) -> Iterator[Finding]:
    for node in seen.spec.nodes:
        look, name = seen.node(node.id).look, seen.name(node.id)
        trial = look.trial if look is not None else None
        why_not = seen.survey.why_missing(f"look at {name}") if look is None else trial and trial.untried
        if why_not:
            yield unverifiable(CODE, name, why_not, EXPECTED, BY_HAND, Severity.WARNING)
        failed = unstartable(trial, name, node.kafka_home) if trial is not None else None
        if failed is not None:
            yield failed


CHECKS = (
    Check(
        code=CODE,
        holds="a JVM starts on each node with Kafka's jars",
        because="a node that runs has all in memory that it needs, and nobody sees that it could not start again: its java was "
        "replaced or removed, a jar is damaged or may not be read any more, a security program lets nobody open it, a limit "
        "leaves no room. The migration's restart would end a node that is well. Asked again right before each stop",
        source="`kafka.Kafka --version`, by the java of the node's process and with the jars of `kafka_home`, in a JVM of "
        "64 MiB that opens no port, no log and no agent; run by the node driver, as a start is. A second of one CPU",
        unverifiable="the node's process is no plain `java … kafka.Kafka`, its command line may not be read, or "
        "python3 cannot be run there: a warning",
        of_survey=(_tried,),
    ),
)
