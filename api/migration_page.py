"""The pages of migrations: what the answers of the API say, and nothing that they do not."""

from typing import Any

from starlette.responses import Response

from api.answers import MigrationAnswer, MigrationList
from api.plots import HEIGHT, LEFT, RIGHT, WIDTH, plots_of
from api.web_pages import web_page
from domain.records import ACTIVE_STATES, ApprovalState, MigrationState
from domain.sentences import action_of, sentence_of
from ledger.ledger import SqlLedger

EVENTS_SHOWN = 60


def list_page(answer: MigrationList) -> Response:
    return web_page("migrations.html", migrations=answer.items)


async def migration_page(answer: MigrationAnswer, ledger: SqlLedger) -> Response:
    """One migration, the most important first."""
    events = await ledger.newest_events(answer.id, EVENTS_SHOWN)
    told = [(event, sentence) for event in events if (sentence := sentence_of(event)) is not None]
    return web_page(
        "migration.html",
        m=answer,
        told=told,
        newest_seq=events[0].seq if events else 0,
        plots=plots_of(await ledger.samples(answer.id)),
        frame={"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT},
        doing=_doing(answer),
        shortest_first=_shortest_first,
        **_possible(answer),
    )


def _shortest_first(evidence: dict[str, Any]) -> dict[str, Any]:
    """What is said in a word comes before what has many parts."""
    return dict(sorted(evidence.items(), key=lambda named: _size(named[1])))


def _size(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(_size(part) for part in inner)


def _doing(answer: MigrationAnswer) -> str | None:
    step = answer.in_hand
    return None if step is None else action_of(step.action, ", ".join(step.nodes), step.stage)


def _possible(answer: MigrationAnswer) -> dict[str, Any]:
    """What can be asked of it now. Who may ask is another question, and the API's."""
    is_active = answer.state in ACTIVE_STATES
    is_held = answer.hold is not None or answer.state is MigrationState.HELD
    armed = [approval for approval in answer.approvals if approval.state is ApprovalState.ARMED]
    return {
        "is_active": is_active,
        "armed": armed,
        "can_hold": is_active and not is_held,
        "can_resume": is_active and is_held,
        "can_roll_back": is_active and answer.intent == "forward",
    }
