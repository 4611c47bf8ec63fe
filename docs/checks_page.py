"""The page of the preflight's checks, made from its catalogue."""

from domain.checks.acceptance import IDENTITY_CODES
from domain.checks.seen import Check
from domain.decisions import Severity
from domain.zk_to_kraft.checks.catalogue import CATALOGUE

HEAD = """\
# Preflight checks

Made from `domain/zk_to_kraft/checks` by `make docs`. Do not edit.

Before anything is touched, the cluster is looked at once, whole, and every check below is asked. Nothing is written and nothing
restarted for that: on each node one small Python program is run, and it only reads. One finding of severity `blocker` is
enough: the migration ends in the state `refused`, with each finding's object, what was observed, what was expected, and what to
do. A `warning` stops nothing, and somebody should have read it; an `info` is worth knowing. A part that does not answer is not
a finding: the migration waits, says which part, and looks again.

What cannot be looked at with the access given is found as *unverifiable*, with what is missing. That is never a pass: where the
check's findings are blockers, it stops the migration too, until somebody gives access, or has looked otherwise and accepts the
finding. A blocker can be accepted by name, with who and why, in the policy's `accepted_findings`: `{"code": "PF29", "object":
"*", "by": "ann", "reason": "tried with Kafka's own tools"}`. It is still shown. Findings that tell which cluster this is
cannot be accepted, as is said with these checks below: a policy that names them is refused.

A value in a file may be a reference to a configuration provider, such as `${file:/etc/kafka/x.properties:key}`. It is never
resolved outside its node. A running broker says what it runs with (DescribeConfigs), and that value is judged. If it does not
say so, the finding is *unverifiable*: "given by a configuration provider, not read". References are compared as they stand.

Of properties files only harmless values are kept. Everything else is compared between nodes by digests that are keyed with
a number of that one look, which is never stored.

The codes are stable. Severity below is that of a check's gravest finding.
"""


def checks() -> str:
    rows = [f"| [{check.code}](#{check.code.lower()}) | {_severity(check)} | {check.holds} |" for check in CATALOGUE]
    table = "\n".join(["| code | severity | what must hold |", "|---|---|---|", *rows])
    return "\n".join([HEAD, table + "\n", *map(_section, CATALOGUE)])


def _section(check: Check) -> str:
    lines = [
        f"## {check.code}\n",
        f"{_capital(check.holds)}.\n",
        f"- **Severity**: {_severity(check)}.",
        f"- **Because otherwise**: {check.because}.",
        f"- **Looked at**: {check.source}.",
        f"- **Unverifiable**: {check.unverifiable or 'never: without this part nothing starts'}.",
        *(["- **Cannot be accepted**: it tells which cluster this is."] if check.code in IDENTITY_CODES else []),
        f"- **Asked again** right before the first effect: {'yes' if check.of_look else 'no'}.",
    ]
    return "\n".join(lines) + "\n"


def _severity(check: Check) -> str:
    return f"`{Severity(check.severity)}`"


def _capital(sentence: str) -> str:
    """Names in backquotes stay as they are."""
    return sentence[:1].upper() + sentence[1:]
