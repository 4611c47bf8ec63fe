"""Files of a real cluster full of secrets: nothing that we store, answer, log or show has one of them."""

import re
from collections.abc import Iterator

import pytest

from domain.configuration.properties import ENCODING
from playground.rig import Rig
from playground.seeded_secrets import seeded
from tests.cluster.traces import traces_of

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.timeout(900)]

MARKER = "hush-marker-that-may-be-shown"
ABOVE = f"sasl.kerberos.service.name={MARKER}\n"
"""A line of context in every plan: the search has to find it."""
ID = re.compile(r"^broker\.id", re.MULTILINE)
FORMS = ("application/json", "text/markdown", "text/html")


def test_no_secret_of_a_file_is_stored_answered_logged_or_shown(rig: Rig) -> None:
    secrets = with_secrets(rig)
    base = rig.cluster.directory / "base.properties"
    of_base = seeded("base")
    base.write_text(of_base.text, ENCODING)
    secrets |= {f"base: {place}": secret for place, secret in of_base.secrets.items()}
    rig.register(lambda spec: spec["quorum"]["controllers"][0].update(base_properties=str(base)))
    plan = rig.plan()
    assert not plan["is_blocked"], plan["findings"]
    migration_id = rig.migrate()
    rig.await_gate(migration_id)

    answers = dict(answers_of(rig, plan["id"], migration_id))
    found = {what: sorted(place for place, secret in secrets.items() if secret in text) for what, text in answers.items()}
    assert {what: places for what, places in found.items() if places} == {}
    shown = {what for what, text in answers.items() if MARKER in text}
    assert {f"/plans/{plan['id']} as {form}" for form in FORMS} <= shown, "the same search finds what may be shown"
    told = {what for what, text in answers.items() if "controller.quorum.voters" in text}
    assert {f"/migrations/{migration_id}/{part} as application/json" for part in ("runbook", "events")} <= told

    places = [rig.services.directory, rig.temporal.directory]
    control = {"id": migration_id.encode(), "cluster": rig.cluster.spec.cluster_id.encode(), "key": b"zookeeper.connect"}
    searched = {path for _, path in traces_of(control, places)}
    for place in ("ledger.db", "artefacts", str(rig.temporal.directory), ".log"):
        assert any(place in path for path in searched), f"{place} is searched: {sorted(searched)}"
    assert traces_of({place: secret.encode() for place, secret in secrets.items()}, places) == set()


def with_secrets(rig: Rig) -> dict[str, str]:
    """Of two brokers' files, above the first line that a migration changes and below the last, in force."""
    secrets: dict[str, str] = {}
    for broker in rig.cluster.spec.brokers[:2]:
        for place in ("above", "below"):
            one, path = seeded(f"{place}{broker.id}"), rig.by_hand.properties_file(broker.id)
            text = path.read_text(ENCODING)
            seeds = ID.sub(lambda found, one=one: f"{one.text}{ABOVE}{found[0]}", text, count=1)  # type: ignore[misc]
            path.write_text(seeds if place == "above" else f"{text}\n{one.text}", ENCODING)
            secrets |= {f"broker {broker.id}, {place}: {shape}": secret for shape, secret in one.secrets.items()}
        rig.by_hand.put_into_force(broker.id, {})
    return secrets


def answers_of(rig: Rig, plan_id: str, migration_id: str) -> Iterator[tuple[str, str]]:
    """What people get to see, in every form."""
    parts = ("", "/runbook", "/rollback-preview", "/events", "/blockers", "/reports", "/commands")
    paths = [f"/plans/{plan_id}", *(f"/migrations/{migration_id}{part}" for part in parts)]
    paths += [f"/clusters/{rig.cluster.spec.name}", f"/clusters/{rig.cluster.spec.name}/observation"]
    for path in paths:
        for form in FORMS:
            answer = rig.http.get(f"{rig.services.api_url}{path}", headers={"Accept": form}, timeout=90)
            if answer.is_success:
                yield f"{path} as {form}", answer.text
