"""The product, as any client sees it: HTTP and nothing else.

Reading never gives up: an API that does not answer is asked again, as a worker of ours may be restarting. What changes
something raises `Refused` with the problem's own words, for a person to read.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, Field

from domain.cluster import ClusterSpec
from domain.decisions import Finding, Intent
from domain.drift.report import DriftFinding, Verdict
from domain.errors import Permanent
from domain.plans import Estimate
from domain.questions import ClusterSight, RollbackPreview
from domain.records import Event, NodeStatus, OpenGate
from playground.wanted import before, wanted_json

AGAIN_SECONDS = 0.5
PENDING = "pending"
"""A command's status while nobody has answered it."""
READ_TIMEOUT = httpx.Timeout(10.0)
LOOK_TIMEOUT = httpx.Timeout(60.0)
"""The API itself waits for a worker's look, up to 40 s."""
STREAM_TIMEOUT = httpx.Timeout(10.0, read=60.0)
"""A stream that has nothing to tell sends a comment every 15 s."""


class Refused(Permanent):
    """The API said no; `code` is the problem's."""

    def __init__(self, answer: httpx.Response) -> None:
        body: dict[str, Any] = answer.json() if "json" in answer.headers.get("content-type", "") else {}
        self.code: str = body.get("code", "")
        errors = "; ".join(f"{error['field']}: {error['message']}" for error in body.get("errors") or ())
        super().__init__(f"{answer.status_code} {body.get('title', '')}: {body.get('detail', '')} {errors}".strip())


class Answer(BaseModel):
    """What we need of an answer; the rest may change."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class WaitAnswer(Answer):
    reason: str
    means: str
    since: datetime
    waits_for: str = Field(validation_alias="for")
    objects: tuple[str, ...] = ()
    detail: str = ""


class LinksAnswer(Answer):
    temporal_ui: str | None = None


class ReportSeen(Answer):
    check: str
    verdict: str


class DecisionSeen(Answer):
    kind: str
    gate: str | None
    by: str
    reason: str


class NextStepSeen(Answer):
    subject: str
    objects: tuple[str, ...] = ()


class PauseSeen(Answer):
    seconds: float
    node: str
    measure: str


class SummarySeen(Answer):
    """What the product says of a migration that has ended."""

    longest_pause: PauseSeen | None
    reports: tuple[ReportSeen, ...]
    decisions: tuple[DecisionSeen, ...]
    what_now: tuple[NextStepSeen, ...]


class MigrationSeen(Answer):
    """`GET /migrations/{id}`."""

    id: str
    state: str
    intent: Intent = Intent.FORWARD
    phase: str | None
    waiting: WaitAnswer | None
    nodes: tuple[NodeStatus, ...]
    gates: tuple[OpenGate, ...]
    findings: tuple[Finding, ...]
    outcome: str | None
    summary: SummarySeen | None = None
    ended_at: datetime | None
    links: LinksAnswer


class CommandSeen(Answer):
    """One of `GET /migrations/{id}/commands`."""

    id: str
    status: str
    refused_because: str | None


class PlanSeen(Answer):
    """`GET /plans/{id}`, once it is made."""

    id: str
    is_blocked: bool
    findings: tuple[Finding, ...]
    unknown: tuple[str, ...]
    restarts: dict[str, int]
    estimate: Estimate


class BlockerSeen(Answer):
    """One of `GET /migrations/{id}/blockers`."""

    code: str
    object: str
    observed: str
    fix: str


class Door:
    """A client of one API. To be closed."""

    def __init__(self, api_url: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._client = httpx.AsyncClient(base_url=api_url, timeout=READ_TIMEOUT, trust_env=False, transport=transport)
        self._wanted: dict[str, Any] = {}

    async def close(self) -> None:
        await self._client.aclose()

    async def register(self, spec: ClusterSpec) -> None:
        """`spec`: as migrations see it; from now on they want its quorum."""
        self._wanted = wanted_json(spec)
        await self._change("PUT", f"/clusters/{spec.name}", before(spec).model_dump(mode="json"))

    async def start_migration(self, cluster: str, policy: dict[str, Any]) -> str:
        """Gives its id."""
        answer = await self._change("POST", "/migrations", self._asked(cluster, policy))
        return MigrationSeen.model_validate(answer).id

    async def plan(self, cluster: str, policy: dict[str, Any], *, rehearse: bool) -> PlanSeen:
        """Returns when it is made; raises Permanent when it cannot be."""
        body = self._asked(cluster, policy) | ({"rehearse": True} if rehearse else {})
        asked = await self._change("POST", "/plans", body)
        while asked["state"] == "running":
            await asyncio.sleep(AGAIN_SECONDS)
            asked = await self._read(asked["links"]["self"], READ_TIMEOUT)
        if asked["plan"] is None:
            raise Permanent(f"the plan was not made: {asked['detail']}")
        return PlanSeen.model_validate(asked["plan"])

    def _asked(self, cluster: str, policy: dict[str, Any]) -> dict[str, Any]:
        return {"cluster": cluster, "kind": "zk-to-kraft", "policy": policy, "wanted": self._wanted}

    async def start_planned(self, cluster: str, plan_id: str) -> str:
        """Gives its id. The API looks at the cluster once more before it says yes."""
        body = {"cluster": cluster, "kind": "zk-to-kraft", "plan_id": plan_id}
        return MigrationSeen.model_validate(await self._change("POST", "/migrations", body, LOOK_TIMEOUT)).id

    async def blockers(self, migration_id: str) -> tuple[BlockerSeen, ...]:
        """Why nothing happens, cause by cause, from a fresh look."""
        items = (await self._read(f"/migrations/{migration_id}/blockers", LOOK_TIMEOUT))["items"]
        return tuple(BlockerSeen.model_validate(item) for item in items)

    async def decide(self, migration_id: str, gate: OpenGate, decision: str, reason: str) -> None:
        """`approve` or `reject`, on the evidence that was shown."""
        body = {"gate": gate.name, "decision": decision, "reason": reason, "evidence_hash": gate.evidence_hash}
        await self._change("POST", f"/migrations/{migration_id}/approvals", body)

    async def preview(self, migration_id: str) -> RollbackPreview:
        """What a rollback would do now. Raises `Refused` where there is no way back."""
        return RollbackPreview.model_validate(await self._read(f"/migrations/{migration_id}/rollback-preview", LOOK_TIMEOUT))

    async def roll_back(self, migration_id: str, preview_hash: str, reason: str) -> None:
        """On the preview that was shown. Returns when the migration has agreed; raises Permanent when it has not."""
        body = {"preview_hash": preview_hash, "reason": reason}
        command = CommandSeen.model_validate(await self._change("POST", f"/migrations/{migration_id}/rollback", body))
        while command.status == PENDING:
            await asyncio.sleep(AGAIN_SECONDS)
            asked = (await self._read(f"/migrations/{migration_id}/commands", READ_TIMEOUT))["items"]
            command = next(seen for item in asked if (seen := CommandSeen.model_validate(item)).id == command.id)
        if command.refused_because is not None:
            raise Permanent(command.refused_because)

    async def migration(self, migration_id: str) -> MigrationSeen:
        return MigrationSeen.model_validate(await self._read(f"/migrations/{migration_id}", READ_TIMEOUT))

    async def first_finding(self, migration_id: str) -> str:
        """The gravest difference of the newest report that has one, in one line."""
        reports = (await self._read(f"/migrations/{migration_id}/reports", READ_TIMEOUT))["items"]
        first = next(report["first"][0] for report in reports if report["verdict"] == Verdict.DRIFT)
        found = DriftFinding.model_validate(first)
        sides = f"ZooKeeper says {found.left}, KRaft {found.right}"
        return f"{found.record} {found.key}, {found.field or found.finding}: {sides}"

    async def look(self, cluster: str) -> ClusterSight:
        """What is seen now, by a worker of the product."""
        return ClusterSight.model_validate(await self._read(f"/clusters/{cluster}/observation", LOOK_TIMEOUT))

    async def events(self, migration_id: str, after: int) -> list[Event]:
        """A page of what came after the event with this `seq`; empty when nothing did."""
        page = await self._read(f"/migrations/{migration_id}/events?after={after}", READ_TIMEOUT)
        return [Event.model_validate(item) for item in page["items"]]

    async def follow(self, migration_id: str, after: int = 0) -> AsyncIterator[Event]:
        """Events as they happen. A stream that breaks or ends is taken up where it stopped, so none is missed or told twice."""
        while True:
            try:
                async for event in self._stream(migration_id, after):
                    after = event.seq
                    yield event
            except httpx.TransportError:
                await asyncio.sleep(AGAIN_SECONDS)

    async def _stream(self, migration_id: str, after: int) -> AsyncIterator[Event]:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        url = f"/migrations/{migration_id}/events"
        async with self._client.stream("GET", url, headers=headers, timeout=STREAM_TIMEOUT) as answer:
            if not answer.is_success:
                await asyncio.sleep(AGAIN_SECONDS)
                return
            async for line in answer.aiter_lines():  # the API puts an event's data on one line
                if line.startswith("data:"):
                    yield Event.model_validate_json(line.removeprefix("data:"))

    async def _read(self, url: str, timeout: httpx.Timeout) -> Any:  # noqa: ANN401 - JSON
        while True:
            try:
                answer = await self._client.get(url, timeout=timeout)
            except httpx.TransportError:
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            if answer.is_success:
                return answer.json()
            if answer.status_code < 500:
                raise Refused(answer)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _change(self, method: str, url: str, body: dict[str, Any], timeout: httpx.Timeout = READ_TIMEOUT) -> Any:  # noqa: ANN401 - JSON
        answer = await self._client.request(method, url, json=body, timeout=timeout)
        if not answer.is_success:
            raise Refused(answer)
        return answer.json()
