"""The pages say what the code says."""

import importlib
import json
import re
from pathlib import Path

import pytest

from api import openapi
from api.requests import CheckOrder, MigrationRequest, RollbackRequest
from docs.generate import PAGES
from docs.guard_catalogue import CATALOGUE, Guard
from domain.canaries import PREFIX, Canary
from domain.cluster import ConfigurationManagement
from domain.diagnosis.blocker import CODES
from domain.drift.records import KINDS
from domain.drift.report import CheckName, FindingKind, Verdict
from domain.drift.tolerations import Toleration
from domain.pages import docs_of
from domain.plans import IN_THE_WAY, MOVED, NOTHING_ANSWERS
from domain.records import MigrationState
from domain.rolling.configuration_management import ConfigurationState
from domain.waits import WaitReason
from domain.zk_to_kraft.losses import DRIFT, METADATA_CHANGES, NEVER_WRITTEN, TOPIC_IDS
from domain.zk_to_kraft.phases import Phase
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.steps import GateName, StepAction
from domain.zk_to_kraft.waits import ZkWait

REPOSITORY = Path(__file__).parent.parent.parent
CHECKS = (REPOSITORY / "domain" / "checks", REPOSITORY / "domain" / "zk_to_kraft" / "checks")
REHEARSAL = REPOSITORY / "domain" / "zk_to_kraft" / "rehearsal" / "outcome.py"
LOSSES = REPOSITORY / "domain" / "zk_to_kraft" / "losses.py"
DECISIONS = sorted((REPOSITORY / "docs" / "decisions").glob("*.md"))
PARTS = ["Context", "Decision", "Rejected", "Consequences"]


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_what_would_be_written(name: str) -> None:
    assert (REPOSITORY / "docs" / name).read_text(encoding="utf-8") == PAGES[name](), "make docs"


def test_every_preflight_code_is_explained_and_no_other() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for folder in CHECKS for path in folder.glob("*.py"))
    page = (REPOSITORY / "docs" / "checks.md").read_text(encoding="utf-8")
    raised = sorted(set(re.findall(r'"(PF\d\d)"', sources)))
    assert len(raised) == 48
    assert re.findall(r"^## (PF\d\d)$", page, re.MULTILINE) == raised
    assert re.findall(r"^\| \[(PF\d\d)\]\(#pf\d\d\) \|", page, re.MULTILINE) == raised


def test_the_client_for_keycloak_is_the_one_that_was_run() -> None:
    page = (REPOSITORY / "docs" / "people.md").read_text(encoding="utf-8")
    realm = json.loads((REPOSITORY / "tests" / "system" / "realm.json").read_text(encoding="utf-8"))
    assert [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)] == [realm["clients"][0]]


@pytest.mark.parametrize("guard", CATALOGUE, ids=lambda guard: guard.code)
def test_a_guard_is_where_the_page_says(guard: Guard) -> None:
    """Every place that is named is there, and a guard that is nowhere says so."""
    for place in guard.held_in:
        module, _, name = place.partition(":")
        found: object = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    assert guard.held_in or guard.lacks == "The whole guard."
    assert set(guard.shows) <= {*WaitReason, *ZkWait, *CODES, guard.code}


def test_the_guards_are_all_there() -> None:
    assert [guard.code for guard in CATALOGUE] == [f"GF{number:02}" for number in range(1, 24)]


REHEARSED = [f"RH{number:02}" for number in range(8)]


def test_the_codes_of_rehearsals_are_all_there() -> None:
    raised = set(re.findall(r'"(RH\d\d)"', REHEARSAL.read_text(encoding="utf-8")))
    assert raised == set(REHEARSED)


@pytest.mark.parametrize(
    "code",
    [
        *WaitReason,
        *ZkWait,
        *CODES,
        *(guard.code for guard in CATALOGUE),
        *REHEARSED,
        "PF01",
        MOVED,
        IN_THE_WAY,
        NOTHING_ANSWERS,
    ],
)
def test_the_docs_of_a_code_are_there(code: str) -> None:
    page, _, anchor = docs_of(code).partition("#")
    headings = re.findall(r"^#+ (.+)$", (REPOSITORY / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert anchor in {heading.lower().replace(" ", "-") for heading in headings}


def test_every_canary_is_explained_in_its_order() -> None:
    page = (REPOSITORY / "docs" / "canaries.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z]+)` \|", page, re.MULTILINE) == list(Canary)
    assert f"`{PREFIX}`" in page


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_its_four_parts(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.match(rf"# {page.name[:3]} · ", text)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == PARTS


def test_decisions_are_numbered_without_gaps() -> None:
    assert [page.name[:3] for page in DECISIONS] == [f"{number:03}" for number in range(1, len(DECISIONS) + 1)]


def test_the_way_back_is_explained_from_every_phase_with_every_loss_and_gate() -> None:
    page = (REPOSITORY / "docs" / "rollback.md").read_text(encoding="utf-8")
    named = re.findall(r'name=f?"([a-z-]+?)(?:\{name\})?"', LOSSES.read_text(encoding="utf-8"))
    assert len(named) > 2
    losses = {METADATA_CHANGES, NEVER_WRITTEN, DRIFT, TOPIC_IDS} | {f"{name}<node>" for name in named}
    assert set(re.findall(r"^\| `([a-z-]+(?:<node>)?)` \|", page, re.MULTILINE)) == losses
    phases = re.findall(r"`([A-Z_]+)`", "".join(re.findall(r"^\| (`[A-Z].*?) \|", page, re.MULTILINE)))
    assert sorted(phases) == sorted(Phase)
    assert all(f"`{gate}`" in page for gate in GateName if gate != GateName.FINALIZE)
    assert all(f"`{state}`" in page for state in (MigrationState.REVERTING, MigrationState.REVERTED))


def test_the_way_backs_calls_are_those_of_the_api() -> None:
    """In page and README: every address that is named, with or without an id, is in the API's document."""
    known = {(m.upper(), p.replace("{migration_id}", "{id}")) for p, ms in openapi.document()["paths"].items() for m in ms}
    for page in ("docs/rollback.md", "README.md"):
        text = (REPOSITORY / page).read_text(encoding="utf-8")
        named = set(re.findall(r"\b(GET|POST|PUT) (/[a-z{}/-]+)", text))
        called = re.findall(r"curl -s( -X POST)? http://127.0.0.1:8080(/[a-zA-Z$/-]+)", text)
        named |= {("POST" if posted else "GET", path.replace("$ID", "{id}")) for posted, path in called}
        assert named
        assert named <= known


def test_the_way_backs_bodies_are_what_the_api_takes() -> None:
    page = (REPOSITORY / "docs" / "rollback.md").read_text(encoding="utf-8")
    wanted = (REPOSITORY / "examples" / "zk-to-kraft.json").read_text(encoding="utf-8")
    filled = page.replace("""'"$(cat wanted.json)"'""", json.dumps(json.loads(wanted)))
    bound, held = (json.loads(body) for body in re.findall(r"-d '(.+?)'", filled))
    RollbackRequest.model_validate(bound | {"preview_hash": "0" * 64})
    assert MigrationRequest.model_validate(held).hold
    (forced,) = re.findall(r'`(\{"reason": "…".+?\})`', page)
    assert RollbackRequest.model_validate_json(forced).accept_loss


def test_the_comparisons_page_explains_every_word_of_a_report() -> None:
    page = (REPOSITORY / "docs" / "drift.md").read_text(encoding="utf-8")
    explained = re.findall(r"^\| `([a-z_-]+)` \|", page, re.MULTILINE)
    assert explained == [*CheckName, *Verdict, *FindingKind]
    reasons = {
        ZkWait.DRIFT_FOUND,
        ZkWait.COPY_DIFFERS,
        WaitReason.MESSAGES_DIFFER,
        WaitReason.CHECK_INCONCLUSIVE,
        WaitReason.CHECKS_WORKER_MISSING,
    }
    assert all(f"`{reason}`" in page for reason in reasons)
    assert {"max_report_age", "recheck_interval", "tolerated"} <= set(ZkToKraftPolicy.model_fields) & set(
        re.findall(r"`(\w+)`", page)
    )


def test_the_comparisons_calls_and_bodies_are_what_the_api_takes() -> None:
    page = (REPOSITORY / "docs" / "drift.md").read_text(encoding="utf-8")
    known = {(m.upper(), p.replace("{migration_id}", "{id}")) for p, ms in openapi.document()["paths"].items() for m in ms}
    named = set(re.findall(r"\b(GET|POST|PUT) (/[a-z{}/_-]+)", page))
    for variable, parameter in (("$ID", "{id}"), ("$REPORT", "{report_id}"), ("/orders/", "/{name}/")):
        page = page.replace(variable, parameter)
    called = re.findall(r"curl -s( -X POST)? http://127.0.0.1:8080(\S+)", page)
    named |= {("POST" if posted else "GET", path) for posted, path in called}
    assert len(named) > 4
    assert named <= known
    (order,) = re.findall(r"-d '(.+?)'", page)
    assert CheckOrder.model_validate_json(order).check is CheckName.METADATA
    (toleration,) = re.findall(r"^\{.*\}$", page, re.MULTILINE)
    assert Toleration.model_validate_json(toleration).record in KINDS


def test_the_page_of_configuration_management_has_a_hook_that_is_taken_and_every_word_that_is_told() -> None:
    page = (REPOSITORY / "docs" / "configuration-management.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert ConfigurationManagement.model_validate(json.loads(example)["configuration_management"])
    told = (*ConfigurationState, WaitReason.CONFIGURATION_RUNS, WaitReason.FILE_CHANGED, StepAction.RELEASE_CONFIGURATION)
    assert [word for word in told if f"`{word}`" not in page] == []
