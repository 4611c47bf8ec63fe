"""The pages of migrations: what the answers of the API say, and nothing that they do not."""

from typing import Any

from starlette.responses import Response

from api.answers.resources import MigrationAnswer, MigrationList
from api.pages.plots import HEIGHT, LEFT, RIGHT, WIDTH, plots_of
from api.pages.web_pages import web_page
from api.people.access import is_own_request
from domain.principals import Permission, Principal
from domain.records import ACTIVE_STATES, ApprovalState, MigrationState
from domain.sentences import sentence_of
from ledger.ledger import SqlLedger

EVENTS_SHOWN = 60


def list_page(answer: MigrationList) -> Response:
    return web_page("migrations.html", migrations=answer.items)


async def migration_page(answer: MigrationAnswer, ledger: SqlLedger, principal: Principal) -> Response:
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
        **_possible(answer, principal),
        decisions=_decisions(answer, principal),
    )


def _shortest_first(evidence: dict[str, Any]) -> dict[str, Any]:
    """What is said in a word comes before what has many parts."""
    return dict(sorted(evidence.items(), key=lambda named: _size(named[1])))


def _size(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(_size(part) for part in inner)


def _doing(answer: MigrationAnswer) -> str | None:
    step = answer.in_hand
    return None if step is None else step.does or f"{step.action} {', '.join(step.nodes)}"


def _decisions(answer: MigrationAnswer, principal: Principal) -> list[tuple[str, dict[str, Any], str]]:
    """The buttons of an open gate, `{}` in their titles being its name: those that the API would not refuse this person."""
    if not principal.may(Permission.DECIDE):
        return []
    is_own = is_own_request(answer.requested_by, principal)
    approve = [] if is_own else [("Approve {}", {"decision": "approve"}, "main")]
    alone = [("Break glass: approve {} alone", {"decision": "approve", "break_glass": True}, "alarm")]
    return [*approve, ("Reject", {"decision": "reject"}, ""), *(alone if is_own and principal.is_admin else [])]


def _possible(answer: MigrationAnswer, principal: Principal) -> dict[str, Any]:
    """What this person can ask of it now."""
    is_active = answer.state in ACTIVE_STATES
    is_held = answer.hold is not None or answer.state is MigrationState.HELD
    armed = [approval for approval in answer.approvals if approval.state is ApprovalState.ARMED]
    unused = [*armed, *(approval for approval in answer.approvals if approval.state is ApprovalState.COUNTED)]
    return {
        "is_active": is_active,
        "armed": armed,
        "withdrawable": [one for one in unused if principal.is_admin or one.by == principal.name],
        "is_own": is_own_request(answer.requested_by, principal),
        "can_hold": is_active and not is_held and principal.may(Permission.STOP),
        "can_resume": is_active and is_held and principal.may(Permission.OPERATE),
        "can_roll_back": is_active and answer.intent == "forward" and principal.may(Permission.OPERATE),
    }
