"""`make docs`: writes the pages that are made from the code. `tests/docs` fails when a page is not what this would write."""

import ast
import difflib
import inspect
from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel

from activities.settings import ActivitySettings
from api.settings import ApiSettings
from console.program import default_of
from console.worker_settings import WorkerSettings
from docs.blockers_page import blockers
from docs.checks_page import checks
from docs.cluster_page import cluster
from docs.guard_catalogue import CATALOGUE, Guard
from domain.cluster import Role
from domain.drift.records import COMPARED_KINDS, KINDS, Field, RowKind, Rule
from domain.pages import docs_of
from domain.rolling.change import Sources
from domain.shipped_kinds import SHIPPED_KINDS
from domain.zk_to_kraft.node_config import FEATURES, Feature, controller_file, node_file
from domain.zk_to_kraft.steps import NodeStage
from domain.zk_to_kraft.wanted_file import wanted_file
from playground.broker_properties import BrokerAddresses, render
from playground.example import example_cluster
from spark.settings import CheckSettings

DOCS = Path(__file__).parent

ROLLBACK = """\
## Rollback

| node | goes back to | its file afterwards |
|---|---|---|
| broker in KRaft mode | `migration` | the original, with the keys that this stage adds |
| broker | `zookeeper` | the original, byte for byte, with its mode and owner |
| controller that lost its flag | `migration` | as Keeperless wrote it; an edited file keeps the edit and gets the keys |

The folder `.keeperless` beside the file keeps every file that was overwritten: `<name>.original-<sha256>` is the file from
before this migration, `<name>.before-<sha256>` any other.

A migration that was begun by hand has no original. Its rollback removes the keys that a migration adds, and restores those
that it removes: the ZooKeeper connection from the cluster's specification, other keys as another broker has them. The preview
of the rollback shows the result, and a person has to accept it.
"""

STAGES_HEAD = """\
# A node's properties file, stage by stage

Made from `domain/zk_to_kraft/node_config.py` and `wanted_file.py` by `make docs`. Do not edit.

Keeperless changes a node's properties file right before it restarts that node, and only the keys below. Comments, order and
spelling of all other lines stay. The original stays beside the file, named by its hash.
"""


def node_stages() -> str:
    """The table of `node_config.py`, and what it does to the files of one broker and one controller."""
    spec = example_cluster()
    broker = spec.brokers[0]
    before = render(BrokerAddresses(1, broker.host, 9092, broker.rack or "", Path(broker.log_dirs[0]), spec.ensemble.connect))
    hybrid = node_file(before, spec, broker, NodeStage.MIGRATION)
    controller = spec.controllers[0]
    created = controller_file(spec, controller, None, before)
    finalized = node_file(created, spec, controller, NodeStage.KRAFT)
    in_kraft = node_file(hybrid, spec, broker, NodeStage.KRAFT)
    inverse = wanted_file(Sources(in_kraft, sibling=before), spec, broker, NodeStage.MIGRATION).text
    parts = [
        STAGES_HEAD,
        _table(),
        _section("A broker: `zookeeper` → `migration` (roll 1)", _diff(before, hybrid)),
        _section("The same broker: `migration` → `kraft` (roll 2)", _diff(hybrid, in_kraft)),
        _section("A controller as it is made: `migration`", created, "properties"),
        _section("The same controller: `migration` → `kraft` (finalisation)", _diff(created, finalized)),
        ROLLBACK,
        _section("A broker without an original: `kraft` → `migration`", _diff(in_kraft, inverse)),
    ]
    return "\n".join(parts)


def _table() -> str:
    lines = ["| stage | role | " + " | ".join(f"`{f}`" for f in Feature) + " |", "|---|---|" + "---|" * len(Feature)]
    for stage in NodeStage:
        for role in Role:
            if (stage, role) in FEATURES:
                marks = " | ".join("yes" if feature in FEATURES[stage, role] else "-" for feature in Feature)
                lines.append(f"| {stage} | {role} | {marks} |")
    return "\n".join(lines) + "\n"


def _section(title: str, content: str, language: str = "diff") -> str:
    return f"## {title}\n\n```{language}\n{content.rstrip()}\n```\n"


def _diff(old: str, new: str) -> str:
    """What a reviewer would see, without the file names."""
    return "\n".join(list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1))[2:])


CONFIGURATION_HEAD = """\
# Configuration

Made from the settings classes by `make docs`. Do not edit.

Every setting is an environment variable. Programs read it once, at their start. Durations are ISO 8601 (`PT10M`) or seconds.

A setting of the API or a worker can also be a file in `/run/secrets` with the variable's name in small letters. If both
exist, the variable counts.

The connection to Temporal has Temporal's own settings: `TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`,
`TEMPORAL_TLS_…`, or a profile in the configuration file of Temporal's command line.

For the health check of a container, run `keeperless-workflows --health`, or the same of another worker. It exits with 0 if the
worker on this machine sent a heartbeat within 30 seconds and polls Temporal for tasks. Otherwise it exits with 1 and prints the
reason. The API's health is `GET /livez` and `GET /readyz`.
"""

POLICY_HEAD = """\
## The policy of a migration

`POST /migrations` and `POST /plans` take it as `policy`. A migration keeps its policy to the end.
"""


def configuration() -> str:
    """What an operator may set, with what each setting is for."""
    parts = [
        CONFIGURATION_HEAD,
        "## `keeperless-api`\n",
        _settings(ApiSettings, "KEEPERLESS_"),
        "## `keeperless-activities`, and `keeperless-checks`\n",
        _settings(ActivitySettings, "KEEPERLESS_"),
        "## `keeperless-checks` alone\n",
        _settings(CheckSettings, "KEEPERLESS_"),
        "## `keeperless-workflows`\n",
        _settings(WorkerSettings, "KEEPERLESS_"),
        POLICY_HEAD,
        *(f"### `{kind.name}`\n\n{_settings(kind.policy, '')}" for kind in SHIPPED_KINDS.values()),
    ]
    return "\n".join(parts)


def _settings(model: type[BaseModel], prefix: str) -> str:
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for name, field in model.model_fields.items():
        called = f"{prefix}{name.upper()}" if prefix else name
        lines.append(f"| `{called}` | {_code(default_of(field.default))} | {field.description} |")
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return f"`{text}`" if text else "-"


DRIFT_HEAD = """\
# What is compared, field by field

Made from `domain/drift/records.py` by `make docs`. Do not edit. [drift.md](drift.md) says how to start a comparison and how to
read its report.

Each kind below is compared row by row. A row is `missing_left` if ZooKeeper lacks it, and `missing_right` if KRaft lacks it.
If both have the row, each field is compared by its rule. A finding of severity `block` or `warn` is a drift; `info` is only
reported. In the policy, `tolerated` uses the kinds and fields of this page.
"""


def drift_kinds() -> str:
    """Kinds, fields and rules of a comparison."""
    rules = [f"| `{rule}` | {_means(rule)} |" for rule in Rule]
    parts = [
        DRIFT_HEAD,
        "## Rules\n",
        "\n".join(["| rule | two values agree when |", "|---|---|", *rules]) + "\n",
        *(_kind_of_row(KINDS[name]) for name in COMPARED_KINDS),
    ]
    return "\n".join(parts)


def _kind_of_row(kind: RowKind) -> str:
    keys = [f"| `{key.name}` | `{key.type}` | key | - | {key.means} |" for key in kind.keys]
    values = [
        f"| `{value.name}` | `{value.type}` | `{value.rule}` | {_severity(value)} | {value.means} |" for value in kind.values
    ]
    places = f"ZooKeeper: {kind.znode}. KRaft: {kind.record}. Severity if one side lacks a row: `{kind.missing}`.\n"
    table = ["| field | type | rule | severity | meaning |", "|---|---|---|---|---|", *keys, *values]
    return f"## `{kind.name}`\n\n{places}\n" + "\n".join(table) + "\n"


def _severity(field: Field) -> str:
    return "-" if field.rule is Rule.NOT_COMPARED else f"`{field.severity}`"


def _means(rule: Rule) -> str:
    """The words below the member in the source: there they are next to what they explain."""
    body = next(node for node in ast.parse(inspect.getsource(Rule)).body if isinstance(node, ast.ClassDef)).body
    for member, words in pairwise(body):
        if isinstance(member, ast.Assign) and isinstance(member.value, ast.Constant) and member.value.value == rule.value:
            return " ".join(str(ast.literal_eval(words.value)).split()) if isinstance(words, ast.Expr) else ""
    raise LookupError(rule)


GUARDS_HEAD = """\
# Guards in flight

Made from `docs/guard_catalogue.py` by `make docs`. Do not edit.

Guards protect a migration while it runs, after the [preflight](checks.md) has passed. Each guard names the code that
implements it, what you see when it acts (a wait's reason, or a code of [`GET /migrations/{id}/blockers`](blockers.md)), and
what it does not cover.
"""


def guards() -> str:
    """The registry of guards."""
    return "\n".join([GUARDS_HEAD, *(_guard(each) for each in CATALOGUE)])


def _guard(guard: Guard) -> str:
    places = ", ".join(f"`{place.replace(':', '.')}`" for place in guard.held_in) or "nowhere"
    shown = ", ".join(_linked(code) for code in guard.shows) or "nothing; the step is not taken yet"
    parts = [f"## {guard.code}\n", f"**{guard.title}.** {guard.what}\n", f"- **Implemented in**: {places}"]
    parts += [f"- **Reported as**: {shown}"] if guard.held_in else []
    parts += [f"- **Not covered**: {guard.lacks}"] if guard.lacks else []
    return "\n".join(parts) + "\n"


def _linked(code: str) -> str:
    return f"[`{code}`]({docs_of(code).removeprefix('docs/')})"


PAGES = {
    "cluster.md": cluster,
    "node-stages.md": node_stages,
    "configuration.md": configuration,
    "drift-kinds.md": drift_kinds,
    "guards.md": guards,
    "blockers.md": blockers,
    "checks.md": checks,
}


def main() -> None:
    for name, write in PAGES.items():
        (DOCS / name).write_text(write(), encoding="utf-8")
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
