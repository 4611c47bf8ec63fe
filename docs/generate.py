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
from domain.cluster import Role
from domain.decisions import NodeStage
from domain.drift.records import COMPARED_KINDS, KINDS, Field, Kind, Rule
from domain.pages import docs_of
from domain.policy import MigrationPolicy
from domain.rolling.change import Sources
from domain.zk_to_kraft.guard_catalogue import CATALOGUE, Guard
from domain.zk_to_kraft.node_config import FEATURES, Feature, controller_file, node_file
from domain.zk_to_kraft.wanted_file import wanted_file
from playground.broker_properties import BrokerAddresses, render
from playground.example import example_cluster
from spark.settings import CheckSettings

DOCS = Path(__file__).parent

WAY_BACK = """\
## The way back

- A broker in KRaft mode goes back to `migration`: its original, with what that stage adds.
- A broker goes back to `zookeeper`: its original, byte for byte, with its mode and owner.
- A controller that has lost its flag goes back to `migration`: as it was made. Where somebody has edited it, the flag and what
  else is missing is put in, and the edit stays.

Beside the file lies the folder `.keeperless`: `<name>.original-<sha256>` is the file as it was before this migration,
`<name>.before-<sha256>` any other file that was overwritten. Nothing that was overwritten is lost.

Where there is no original (a migration that was begun by hand), what a migration adds is taken back key by key, and what it
took away is put back: the connection from the cluster's specification, the rest as another broker has it. The preview of a
rollback shows that, and somebody has to accept it.
"""

STAGES_HEAD = """\
# What is in a node's file, stage by stage

Made from `domain/zk_to_kraft/node_config.py` and `wanted_file.py` by `make docs`. Do not edit.

A node's properties file changes only just before that node restarts, only in the keys below, and the original stays beside
it, named by its hash. Comments, order and the way a line is written are left as they are.
"""


def node_stages() -> str:
    """The table of `node_config.py`, and what it does to the files of one broker and one controller."""
    spec = example_cluster()
    broker = spec.brokers[0]
    before = render(BrokerAddresses(1, broker.host, 9092, broker.rack or "", Path(broker.log_dirs[0]), spec.zookeeper.connect))
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
        WAY_BACK,
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

Everything is an environment variable, read once, at the start. A setting of the API and of all workers can also be a file in
`/run/secrets`, named like its variable in small letters; the variable takes precedence. Durations are ISO 8601 (`PT10M`) or
seconds. How Temporal is reached is said in Temporal's own words: `TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`,
`TEMPORAL_TLS_…`, or a profile in its configuration file, as Temporal's command line reads them.

`keeperless-workflows --health`, and its like of the other workers, exits with 0 if this machine's worker has beaten within 30
seconds and polls Temporal for tasks, else with 1 and a sentence. It is meant for the health check of a container. The API's
health is `GET /livez` and `GET /readyz`.
"""

POLICY_HEAD = """\
## The policy of a migration

Given with `POST /migrations`, and kept by that migration to its end.
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
        _settings(MigrationPolicy, ""),
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

Made from `domain/drift/records.py` by `make docs`. Do not edit. How to ask for a comparison, and how to read what it says, is
in [drift.md](drift.md).

Each kind below is compared row by row: a row that one side lacks is `missing_left` (ZooKeeper lacks it) or `missing_right`
(KRaft lacks it); of a row that both have, each field is compared by its rule. A policy's `tolerated` names kinds and fields as
they are called here. The severity is that of the finding: `block` and `warn` are a drift, `info` is only told.
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


def _kind_of_row(kind: Kind) -> str:
    keys = [f"| `{key.name}` | `{key.type}` | key | - | {key.means} |" for key in kind.keys]
    values = [
        f"| `{value.name}` | `{value.type}` | `{value.rule}` | {_severity(value)} | {value.means} |" for value in kind.values
    ]
    places = f"ZooKeeper: {kind.znode}. KRaft: {kind.record}. A row that one side lacks: `{kind.missing}`.\n"
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

Made from `domain/zk_to_kraft/guard_catalogue.py` by `make docs`. Do not edit.

What holds while a migration is under way, after the [preflight](checks.md) has let it begin. Each guard says where in the
code it is held, and what people see of it: a wait's reason, or the code of an entry of [`GET
/migrations/{id}/blockers`](blockers.md). What a guard does not do is said as well.
"""


def guards() -> str:
    """The registry of guards."""
    return "\n".join([GUARDS_HEAD, *(_guard(each) for each in CATALOGUE)])


def _guard(guard: Guard) -> str:
    places = ", ".join(f"`{place.replace(':', '.')}`" for place in guard.held_in) or "nowhere"
    shown = ", ".join(_linked(code) for code in guard.shows) or "nothing of its own: the step is not taken yet"
    parts = [f"## {guard.code}\n", f"**{guard.title}.** {guard.what}\n", f"- Held in: {places}"]
    parts += [f"- Shows: {shown}"] if guard.held_in else []
    parts += [f"- Not there: {guard.lacks}"] if guard.lacks else []
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
