"""The page of the preflight's checks, made from its catalogue."""

from domain.checks.acceptance import IDENTITY_CODES
from domain.checks.check import Check
from domain.decisions import Severity
from domain.zk_to_kraft.checks.catalogue import CATALOGUE

HEAD = """\
# Preflight checks

Made from the checks in `domain` by `make docs`. Do not edit.

The preflight runs before a migration touches anything. It observes the whole cluster once and runs every check below. It writes
nothing and restarts nothing: on each node it runs one small Python program, which only reads.

| severity | what follows |
|---|---|
| `blocker` | the migration ends as `refused`; each finding has an object, what was observed, what was expected, and a fix |
| `warning` | nothing stops, but read it before you start |
| `info` | good to know |

The table below shows the highest severity of each check. Codes never change. If a part of the cluster does not answer, that is
no finding: the migration waits, names the part, and observes again.

## Unverifiable findings

If the given access does not suffice for a check, its finding is *unverifiable* and names what is missing. That is never a
pass: if the check's severity is `blocker`, the migration is refused. Give the access, or check it another way and accept the
finding.

## Accepted findings

The policy's `accepted_findings` accepts a blocker by code and object, with who accepts it and why. It is still shown.

```json
{"accepted_findings": [{"code": "PF29", "object": "*", "by": "ann", "reason": "tested with Kafka's own tools"}]}
```

Checks that establish which cluster this is say "Cannot be accepted" below. A policy that names them is refused.

## Values and secrets

A value in a properties file may be a reference to a configuration provider, such as `${file:/etc/kafka/x.properties:key}`. It
is never resolved outside its node. Instead the running broker is asked for the value in force (DescribeConfigs). If it does
not say, the finding is *unverifiable*: "given by a configuration provider, not read". References themselves are compared as
text.

Only harmless values of properties files are kept. All others are compared between nodes by keyed digests; the key is
different for each observation and never stored.

## All checks
"""


def checks() -> str:
    rows = [f"| [{check.code}](#{check.code.lower()}) | {_severity(check)} | {check.holds} |" for check in CATALOGUE]
    table = "\n".join(["| code | severity | expected |", "|---|---|---|", *rows])
    return "\n".join([HEAD, table + "\n", *map(_section, CATALOGUE)])


def _section(check: Check) -> str:
    lines = [
        f"## {check.code}\n",
        f"{_capital(check.holds)}.\n",
        f"- **Severity**: {_severity(check)}.",
        f"- **Why it matters**: {check.because}.",
        f"- **Source**: {check.source}.",
        f"- **Unverifiable**: {check.unverifiable or 'never: without this source no migration starts'}.",
        *(["- **Cannot be accepted**: it establishes which cluster this is."] if check.code in IDENTITY_CODES else []),
        f"- **Repeated** right before the first effect: {'yes' if check.of_look else 'no'}.",
    ]
    return "\n".join(lines) + "\n"


def _severity(check: Check) -> str:
    return f"`{Severity(check.severity)}`"


def _capital(sentence: str) -> str:
    """Names in backquotes stay as they are."""
    return sentence[:1].upper() + sentence[1:]
