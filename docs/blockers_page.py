"""The page of blockers: every code of an entry, and every known log line."""

from collections.abc import Iterable

from domain.diagnosis.blocker import CODES
from domain.diagnosis.logs.catalogue import KAFKA, Told
from domain.diagnosis.logs.endings import CURT, CUT_OFF, KILLED, SILENT, STOPPED, Ending
from domain.zk_to_kraft.migration_lines import MIGRATION
from domain.zk_to_kraft.waits import WAITS

BLOCKERS_HEAD = """\
# Why is nothing happening?

Made from the registries of waits, guards and log lines by `make docs`. Do not edit.

```sh
curl -s http://127.0.0.1:8080/migrations/$ID/blockers
```

The call observes the cluster and answers with one entry for each cause, within fifteen seconds. An empty list means that
nothing blocks the migration. [Diagnosis](diagnosis.md) says what is read for this, where, and with which rights.

| field | meaning |
|---|---|
| `code`, `docs` | the kind of cause, and its explanation: on this page, or among [guards](guards.md) and [checks](checks.md) |
| `object` | the node, file, topic or program that the entry is about |
| `observed`, `expected` | what was found, and what would be right |
| `fix` | what to do, in order |
| `since` | when the wait or alert for this cause began; for any other cause, when you asked |

- Only causes are listed, not their effects: if a broker is down, its lagging replicas are no entry.
- `unlooked` names what could not be observed. A cause there would be missing from the list.
- If one of Keeperless's own programs is missing, that is an entry. `observed_at` is then `null`, and the other entries come
  from the ledger.
- A refused migration lists the findings of its preflight. A migration that has ended lists nothing.

On this page: [waits](#waits) · [steps, programs and machines](#steps-programs-and-machines) · log lines of
[a running node](#log-lines-of-a-running-node), [a node that died](#last-log-lines-of-a-node-that-died),
[a process that cannot connect](#warnings-of-a-process-that-cannot-connect) and
[a ZooKeeper server](#log-lines-of-a-zookeeper-server-that-does-not-serve) ·
[a node that died without a known log line](#a-node-that-died-without-a-known-log-line)
"""


def blockers() -> str:
    """Every code of an entry, and every known log line."""
    waits = [f"### {reason}\n\n{text.means}\n\n**Expected**: {text.expected}.\n" for reason, text in WAITS.items()]
    others = [f"### {code}\n\n{words}\n" for code, words in CODES.items()]
    parts = [
        BLOCKERS_HEAD,
        "## Waits\n",
        "`waiting.reason` of the migration has the same codes.\n",
        *waits,
        "## Steps, programs and machines\n",
        *others,
        "## Guards and checks\n",
        "The [guards](guards.md) explain the codes `GF..`, the [checks](checks.md) the codes `PF..`.\n",
        "## Log lines of a running node\n",
        _lines(told for told in (*MIGRATION, *KAFKA) if told.said == "running" and told.by != ("member",)),
        "## Last log lines of a node that died\n",
        _lines(told for told in KAFKA if told.said == "dying" and told.by != ("member",)),
        "## Warnings of a process that cannot connect\n",
        "They apply to a node, and to a ZooKeeper server without a quorum. The exception below the warning decides. For keys, "
        "certificates, names and open files the causes of the previous section apply too.\n",
        _lines(KAFKA.of("connecting")),
        "## Log lines of a ZooKeeper server that does not serve\n",
        "They are read if `zookeeper.members` of the cluster's specification names the server's `output_file`. If no row "
        "applies, its last error or warning is quoted, with the exception below it.\n",
        _lines(told for told in KAFKA if told.by == ("member",) and told.said != "serving-member"),
        "For a server that serves, if a node gets no session or a tree differs from the leader's:\n",
        _lines(told for told in KAFKA if told.said == "serving-member"),
        "## A node that died without a known log line\n",
        _endings((STOPPED, KILLED, CURT, SILENT, CUT_OFF)),
    ]
    return "\n".join(parts)


def _lines(kinds: Iterable[Told]) -> str:
    rows = [f"| {kind.name} | {kind.expected} | {kind.fix} |" for kind in kinds]
    return "\n".join(["| Cause | Expected | Fix |", "|---|---|---|", *rows]) + "\n"


def _endings(endings: tuple[Ending, ...]) -> str:
    rows = [f"| {ending.observed} | {ending.expected or 'it runs'} | {ending.fix} |" for ending in endings]
    return "\n".join(["| Observed | Expected | Fix |", "|---|---|---|", *rows]) + "\n"
