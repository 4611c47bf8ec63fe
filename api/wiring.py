"""What routes need, made once for one app."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Request

from activities.adapters.artefacts import DirectoryArtefacts
from api.answers.findings import Findings
from api.diagnosis.unattended import Unattended
from api.people.identity import Identity
from api.people.tokens import Tokens
from api.running.audit import Audit
from api.running.caretaker import Caretaker, Schema
from api.running.commands import Courier
from api.running.starting import Starter
from api.running.temporal import Temporal
from api.settings import ApiSettings
from domain.kinds import Kinds
from domain.plans import Plan
from domain.shipped_kinds import SHIPPED_KINDS
from ledger.database import Database, Timeouts
from ledger.ledger import SqlLedger
from ledger.people import SqlPeople

LEDGER_TIMEOUTS = Timeouts(call=timedelta(seconds=1.5), lock=timedelta(seconds=1))
"""A caller is answered within two seconds."""

SCHEMA_PAUSE = timedelta(seconds=2)


@dataclass(frozen=True)
class Wiring:
    """Everything that a route may ask for."""

    settings: ApiSettings
    kinds: Kinds
    database: Database
    schema: Schema
    ledger: SqlLedger
    temporal: Temporal
    unattended: Unattended
    audit: Audit
    starter: Starter
    courier: Courier
    caretaker: Caretaker
    findings: Findings
    people: SqlPeople
    identity: Identity

    @classmethod
    def of(cls, settings: ApiSettings, temporal: Temporal, kinds: Kinds = SHIPPED_KINDS) -> "Wiring":
        """Connects to nothing. Raises `LedgerMisuse` where the ledger's URL is wrong."""
        database = Database(settings.ledger_url, LEDGER_TIMEOUTS)
        ledger = SqlLedger(database)
        audit = Audit(ledger)
        courier = Courier(ledger, temporal)
        people = SqlPeople(database)
        tokens = None if settings.oidc is None else Tokens(settings.oidc)
        starter = Starter(ledger, temporal, settings.start_patience)
        return cls(
            settings=settings,
            kinds=kinds,
            database=database,
            schema=Schema(settings.ledger_url, SCHEMA_PAUSE),
            ledger=ledger,
            temporal=temporal,
            unattended=Unattended(temporal),
            audit=audit,
            starter=starter,
            courier=courier,
            caretaker=Caretaker(ledger, courier, starter, audit, settings.care_interval),
            findings=Findings(DirectoryArtefacts(settings.artefacts)),
            people=people,
            identity=Identity(people if settings.is_auth_on else None, tokens),
        )

    async def plan(self, plan_id: str) -> Plan | None:
        """A plan, read as its kind has it."""
        plan = await self.ledger.plan(plan_id)
        if plan is None:
            return None
        kind = self.kinds[plan.kind]
        return plan.model_copy(update={"policy": kind.policy.of(plan.policy), "wanted": kind.wanted.of(plan.wanted)})


def wiring_of(request: Request) -> Wiring:
    wiring: Wiring = request.app.state.wiring
    return wiring


def wiring_when_usable(request: Request) -> Wiring:
    """Refuses calls until the ledger's schema is the one that this program knows."""
    wiring = wiring_of(request)
    wiring.schema.ensure_current()
    return wiring


AnyWiring = Annotated[Wiring, Depends(wiring_of)]
UsableWiring = Annotated[Wiring, Depends(wiring_when_usable)]
