"""The page of blockers: every code of an entry, and every known log line."""

from domain.diagnosis.blocker_codes import CODES
from domain.diagnosis.logs.authorizer_lines import OF_ZOOKEEPERS
from domain.diagnosis.logs.deaths import CURT, CUT_OFF, DEATHS, KILLED, SILENT, STOPPED, Ending
from domain.diagnosis.logs.lines import Told
from domain.diagnosis.logs.machine_deaths import DATA_FILE_GONE
from domain.diagnosis.logs.registration_lines import SESSION_TOO_SHORT
from domain.diagnosis.logs.replication_lines import SEGMENT_TOO_SMALL
from domain.diagnosis.logs.running_lines import RUNNING
from domain.diagnosis.logs.tree_digests import OTHER_TREE
from domain.diagnosis.logs.unconnected import UNCONNECTED
from domain.diagnosis.logs.zookeeper_deaths import CONFIGURATION, LIVING_KINDS, SERVER_DEATHS, TICKS_TOO_SHORT, TURNS_AWAY
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
        _lines((*RUNNING, SEGMENT_TOO_SMALL, SESSION_TOO_SHORT)),
        "## Last log lines of a node that died\n",
        _lines((*DEATHS, OF_ZOOKEEPERS, DATA_FILE_GONE)),
        "## Warnings of a process that cannot connect\n",
        "They apply to a node, and to a ZooKeeper server without a quorum. The exception below the warning decides. For keys, "
        "certificates, names and open files the causes of the previous section apply too.\n",
        _lines(UNCONNECTED),
        "## Log lines of a ZooKeeper server that does not serve\n",
        "They are read if `zookeeper.members` of the cluster's specification names the server's `output_file`. The first "
        "rows are for a server that runs and has no quorum. If no row applies, its last error or warning is quoted, with "
        "the exception below it.\n",
        _lines((*LIVING_KINDS, TICKS_TOO_SHORT, *SERVER_DEATHS, CONFIGURATION)),
        "For a server that serves, if a node gets no session:\n",
        _lines(TURNS_AWAY),
        "For a server whose tree differs from its leader's:\n",
        _lines((OTHER_TREE,)),
        "## A node that died without a known log line\n",
        _endings((STOPPED, KILLED, CURT, SILENT, CUT_OFF)),
    ]
    return "\n".join(parts)


def _lines(kinds: tuple[Told, ...]) -> str:
    rows = [f"| {kind.name} | {kind.expected} | {kind.fix} |" for kind in kinds]
    return "\n".join(["| Cause | Expected | Fix |", "|---|---|---|", *rows]) + "\n"


def _endings(endings: tuple[Ending, ...]) -> str:
    rows = [f"| {ending.observed} | {ending.expected or 'it runs'} | {ending.fix} |" for ending in endings]
    return "\n".join(["| Observed | Expected | Fix |", "|---|---|---|", *rows]) + "\n"
