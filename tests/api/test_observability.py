"""`/metrics`, what Prometheus makes of it, and the dashboard. Those with a real Prometheus are run by `make system-test`."""

import asyncio
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grafana_foundation_sdk.cog.plugins as grafana_plugins
import httpx
import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from domain.records import Measured, MigrationRecord, MigrationState, NodeStatus, OpenGate, Progress, Sample, Waiting
from domain.worker_health import WorkerHealth
from domain.zk_to_kraft.steps import GateName, NodeStage
from playground.ports import PortLease

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana" / "keeperless.json").read_text("utf-8"))
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
HOSTILE = 'quo"te\\\n'

needs_prometheus = pytest.mark.system
"""Debian's package `prometheus`."""


async def a_waiting_migration(live: Any, make_spec: Callable[..., Any], make_migration: Callable[..., Any]) -> MigrationRecord:
    """With everything that there is to be measured, an hour old."""
    spec, hour_ago = make_spec(), datetime.now(UTC) - timedelta(hours=1)
    await live.wiring.ledger.put_cluster(spec, hour_ago)
    record: MigrationRecord = make_migration(spec, age=timedelta(hours=1))
    await live.wiring.ledger.create_migration(record)
    node = NodeStatus(name="broker-1", role="broker", mode="kraft", stage=NodeStage.KRAFT, is_ready=False, restarts=2)
    numbers = (Measured(name="ZkWriteBehindLag", value=7.0), Measured(name="ZkMigrationState", value=None))
    progress = Progress(
        state=MigrationState.WAITING,
        phase="SOAK",
        waiting=Waiting(reason=f"approval{HOSTILE}", means="", since=hour_ago, for_people=True),
        nodes=(node,),
        gate=OpenGate(name=GateName.FINALIZE, evidence_hash="e" * 64, since=hour_ago, evidence={}),
        steps_done=3,
        steps_total=4,
        sample=Sample(at=hour_ago, numbers=numbers),
    )
    await live.wiring.ledger.record(record.id, [], progress)
    worker = {"id": "w", "program": "keeperless-activities", "host": "a", "pid": 7, "release": "1", "settings_fingerprint": "f"}
    await live.wiring.ledger.beat(WorkerHealth(**worker, started_at=hour_ago, beat_at=datetime.now(UTC)))
    return record


def values(text: str) -> dict[str, float]:
    """By metric and labels, without those that name the migration."""
    found = re.findall(r"^(keeperless_\w+)\{(.*)\} (\S+)$", text, re.MULTILINE)
    own = re.compile(r'(cluster|kind|migration)="[^"]*",?')
    return {f"{name} {own.sub('', labels).strip(',')}".strip(): float(value) for name, labels, value in found}


async def test_metrics_have_what_people_watch(
    live: Any, make_spec: Callable[..., Any], make_migration: Callable[..., Any]
) -> None:
    await a_waiting_migration(live, make_spec, make_migration)
    async with httpx.AsyncClient(base_url=live.url, trust_env=False) as http:
        assert (await http.get("/metrics")).status_code == 401
        answer = await http.get("/metrics", headers={"Authorization": f"Bearer {live.key}"})
    assert answer.headers["content-type"].startswith("text/plain")
    told = values(answer.text)
    assert told['keeperless_migration_info phase="SOAK",state="waiting"'] == 1
    assert told['keeperless_migration_waiting_seconds reason="approvalquo\\"te\\\\\\n",waits_for="people"'] >= 3600
    assert told['keeperless_migration_gate_open_seconds gate="finalize"'] >= 3600
    assert (told["keeperless_migration_steps_done"], told["keeperless_migration_steps"]) == (3, 4)
    assert told['keeperless_migration_node_restarts node="broker-1"'] == 2
    assert told['keeperless_migration_node_ready node="broker-1"'] == 0
    assert told['keeperless_migration_number name="ZkWriteBehindLag"'] == 7
    assert 'keeperless_migration_number name="ZkMigrationState"' not in told, "unknown is absent, and not 0"
    assert told['keeperless_worker_beat_age_seconds program="keeperless-activities",release="1",worker="7@a"'] < 60


def test_the_dashboard_has_no_field_that_grafanas_schema_does_not_have() -> None:
    grafana_plugins.register_default_plugins()
    read = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(DASHBOARD)))
    assert list(lost(DASHBOARD, read)) == []
    misspelt = DASHBOARD | {"panels": [DASHBOARD["panels"][0] | {"titel": "x"}]}
    read = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(misspelt)))
    assert list(lost(misspelt, read)) == [".panels[0].titel"]


def lost(written: Any, read: Any, path: str = "") -> Iterator[str]:
    """Where what Grafana's model read differs from what was written."""
    if isinstance(written, dict):
        for name, value in written.items():
            if isinstance(read, dict) and name in read:
                yield from lost(value, read[name], f"{path}.{name}")
            else:
                yield f"{path}.{name}"
    elif isinstance(written, list):
        for number, value in enumerate(written):
            yield from lost(value, read[number] if number < len(read) else None, f"{path}[{number}]")
    elif written != read:
        yield path


@needs_prometheus
def test_alerts_fire_when_they_should() -> None:
    for command in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        done = subprocess.run(["promtool", *command], cwd=DEPLOY / "prometheus", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def prometheus(directory: Path, target: str, key: str) -> Iterator[str]:
    """A real one with the configuration that compose mounts, but for its target, the place of the key and the interval."""
    (directory / "key").write_text(key, "ascii")
    (directory / "alerts.yml").write_bytes((DEPLOY / "prometheus" / "alerts.yml").read_bytes())
    configuration = (DEPLOY / "prometheus" / "prometheus.yml").read_text("utf-8")
    for written, here in (("api:8080", target), ("/run/secrets/prometheus_key", str(directory / "key")), ("15s", "1s")):
        assert written in configuration
        configuration = configuration.replace(written, here)
    (directory / "prometheus.yml").write_text(configuration, "utf-8")
    with PortLease(1) as lease, (directory / "prometheus.log").open("wb") as log:
        address = f"127.0.0.1:{lease.take()}"
        arguments = ("--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={address}")
        process = subprocess.Popen(["prometheus", *arguments], cwd=directory, stdout=log, stderr=log)
        try:
            yield f"http://{address}"
        finally:
            process.terminate()
            process.wait(30)


@needs_prometheus
async def test_a_real_prometheus_answers_every_query_of_the_dashboard(
    live: Any, make_spec: Callable[..., Any], make_migration: Callable[..., Any], tmp_path: Path
) -> None:
    """All but the verdicts have a value: no comparison was made."""
    record = await a_waiting_migration(live, make_spec, make_migration)
    with prometheus(tmp_path, live.url.removeprefix("http://"), live.key) as url:
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=10) as http, asyncio.timeout(120):
            pending = 'ALERTS{alertname="MigrationNodeNotReady", alertstate="pending"}'  # its ten minutes are not over
            while not await answered(http, pending):  # noqa: ASYNC110 - another process evaluates it
                await asyncio.sleep(0.5)
            empty = [one for one in EXPRESSIONS if not await answered(http, one.replace("$cluster", record.cluster))]
            assert empty == [one for one in EXPRESSIONS if "verdict" in one]


async def answered(http: httpx.AsyncClient, expression: str) -> list[Any]:
    """The series that Prometheus has now; none while it starts."""
    try:
        answer = await http.get("/api/v1/query", params={"query": expression})
    except httpx.TransportError:
        return []
    if answer.status_code == 503:
        return []
    body = answer.raise_for_status().json()
    assert body["status"] == "success", body
    return list(body["data"]["result"])
