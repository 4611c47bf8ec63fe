"""PF45: a node could start with the files that the migration writes: its java is tried beside it."""

from collections.abc import Iterator

from domain.checks.check import Check, Surveyed, unverifiable
from domain.checks.file_characters import CODE, of_survey
from domain.cluster import ControllerSpec, NodeSpec
from domain.decisions import Finding, Severity
from domain.diagnosis.machines.start import JavaTrial

EXPECTED = "a JVM with Kafka's jars starts there and accepts the file"
BY_HAND = "Check on the node that its java starts and that its jars are unchanged."


def unstartable(trial: JavaTrial, name: str, node: NodeSpec) -> Finding | None:
    """Where the trial has failed."""
    if trial.refused is not None and trial.is_late:
        return Finding(
            code=CODE,
            object=f"{name} {node.properties_file}",
            observed=f"Kafka did not finish reading the file for the stage {trial.stage}: {trial.refused}. Its java alone "
            "starts",
            expected=EXPECTED,
            fix="Check whether what that file refers to answers: a file that a config provider or a keystore reads, on a "
            "mount that hangs. If only java itself hung at that moment, the next try succeeds.",
        )
    if trial.refused is not None:
        return _refused(trial, name, node)
    if trial.failed is None:
        return None
    if trial.agents is not None:
        return Finding(
            code=CODE,
            object=name,
            observed=f"its JVM would exit at the next start, because an agent fails: {trial.agents}: {trial.failed}",
            expected=EXPECTED,
            fix="Correct the file that is named, or restore the previous one. A password file must be readable only by its "
            "owner, the user that starts the node (chown, chmod 600). If the agent itself is at fault, correct its jar "
            "or its options in the node's start command. The running process is not affected: its agent read these "
            "files when it started.",
        )
    tried = f"{trial.command} -cp '{node.class_path}' kafka.Kafka --version"
    return Finding(
        code=CODE,
        object=name,
        observed=f"a trial of its java failed, with the user and the place of a real start: `{tried}`: {trial.failed}",
        expected=EXPECTED,
        fix="Run that command on the node, as the user of keeperless-activities, and fix what it reports. Likely causes: "
        "java was removed or replaced; jars are damaged or unreadable; a security program blocks them (fapolicyd, "
        "SELinux, AppArmor: see their logs); a limit of memory or threads.",
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
        observed=f"Kafka does not accept {what}{told}: {trial.refused}",
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
        holds="a JVM with Kafka's jars starts on each node and accepts its file as it will be at every stage; and the "
        "file's characters mean to Java what they seem to mean",
        because="a running node has all that it needs in memory, so it does not show that it could not start again: its "
        "java was replaced, a jar is damaged or unreadable, a security program blocks it, a limit leaves no room. "
        "Or its file has a setting that Kafka accepts in one mode only. The migration's restart would take down a "
        "healthy node. Checked again right before each stop, with the file about to be written. A `#` behind a "
        "value, a trailing blank, a byte order mark or a backslash that swallows the next line is a warning if "
        "Kafka starts with it; an escape that Java cannot read is a blocker",
        source="brokers' files and `base_properties`, line by line. Then `kafka-storage.sh info` on each file that the "
        "migration will write, with the overrides of the start command and the jars of `kafka_home`. It runs with "
        "the java of the node's process (or of its environment if it does not run yet), in a JVM of 64 MiB. That JVM "
        "opens no port and no log of the node; a JMX exporter, Jolokia or remote JMX gets a free port, and other "
        "agents are left out. Kafka reads the file as at a start. The node driver runs it; the file goes through a "
        "pipe; one second of one CPU for each",
        unverifiable="the node's process is not a plain `java … kafka.Kafka`; its command line cannot be read; python3 "
        "cannot be run there; or the file takes values from a config provider other than Kafka's for files and "
        "directories (then only java itself is tried): a warning",
        of_survey=(of_survey, _tried),
    ),
)
