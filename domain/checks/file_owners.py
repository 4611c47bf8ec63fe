"""PF48: nothing else writes a node's properties file: what we write there would be gone with the next start."""

from collections.abc import Iterator

from domain.checks.check import Check, Surveyed, some, unverifiable
from domain.cluster import NodeSpec
from domain.decisions import Finding, Severity
from domain.diagnosis.machines.file_owners import Sign

CODE = "PF48"
EXPECTED = "a file that only the migration writes while it runs"


def _owned(seen: Surveyed) -> Iterator[Finding]:
    for node in seen.spec.nodes:
        name, signs = seen.name(node.id), seen.node(node.id).owners
        if signs is None:
            why = seen.survey.why_missing(f"start command of {name}")
            fix = "Let the user of keeperless-activities read the scripts that start_command names."
            yield unverifiable(CODE, name, why, EXPECTED, fix, Severity.WARNING)
        elif signs:
            yield _finding(signs, name, node)


def _finding(signs: tuple[Sign, ...], name: str, node: NodeSpec) -> Finding:
    """A warning where its configuration management will be paused."""
    hook = node.driver.configuration_management
    quoted = some((f"{sign.where} has `{sign.says}`" for sign in signs), 3)
    fix = (
        "Check that the tool that is paused is the one that writes this file. Before you approve finalize, give it the file "
        "of the last stage."
        if hook is not None
        else (
            f"Find out what writes {node.properties_file}. Take that out of the start command, or declare how to pause it "
            "in configuration_management of the node's driver (docs/configuration-management.md). Then make a new plan. If "
            "nothing writes the file any more, remove the line, or accept this finding."
        )
    )
    return Finding(
        code=CODE,
        severity=Severity.BLOCKER if hook is None else Severity.WARNING,
        object=f"{name} {node.properties_file}",
        observed=f"something else seems to write this file: {quoted}",
        expected=EXPECTED,
        fix=fix,
    )


CHECKS = (
    Check(
        code=CODE,
        holds="only Keeperless writes a node's properties file",
        because="a launcher or configuration management that rewrites the file removes the migration's lines. At its next "
        "restart the node then starts in a mode that the cluster does not accept. If `configuration_management` is "
        "declared for the node, it is paused: a warning",
        source="banners in the comments of brokers' files (`Maintained by Ansible`); placeholders in values of brokers' "
        "files and of `base_properties` (`${strimzienv:…}`); commands in `start_command`, and in the scripts that it "
        "names, that copy to the file or write it. The finding quotes only the sign itself",
        unverifiable="a script that `start_command` names cannot be read: a warning",
        of_survey=(_owned,),
    ),
)
