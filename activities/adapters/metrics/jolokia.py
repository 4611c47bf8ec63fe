"""Gauges through Jolokia's JVM agent (2.6.0): one bulk POST. Protocol: jolokia.org, "Reading attributes", "Bulk requests"."""

import json
import re

from activities.adapters.metrics.gauges import (
    APP_INFO,
    GAUGES,
    RAFT,
    RAFT_ATTRIBUTES,
    SESSION_STATE,
    integer,
    node_metrics,
)
from activities.adapters.metrics.http import Exchange
from domain.cluster import shown
from domain.errors import Obstacle, Transient
from domain.observed.observation import NodeMetrics

OWN_ID = re.compile(r"[:,]id=(\d+)(?:,|$)")


class JolokiaMetrics:
    """Reads `NodeMetrics`. Absent MBean: `None`. No, refused or malformed answer: `Transient`."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def read(self, url: str) -> NodeMetrics:
        wanted = [_read(name, "Value") for name in (*GAUGES.values(), SESSION_STATE)] + [_read(RAFT), _read(APP_INFO)]
        answers = _parse(url, await self._exchange.text("POST", url, wanted), len(wanted))
        *gauges, session, raft, app_info = (
            _value(url, request, answer) for request, answer in zip(wanted, answers, strict=True)
        )
        numbers = dict(zip(GAUGES, gauges, strict=True)) | _attributes(url, raft)
        whole = {field: None if value is None else integer(value, url, field) for field, value in numbers.items()}
        found = _app_info(url, app_info)
        ids = {int(match[1]) for name in found if (match := OWN_ID.search(name)) is not None}
        return node_metrics(url, whole, ids, None if session is None else str(session), _version(url, found))


def _read(mbean: str, attribute: str | None = None) -> dict[str, str]:
    return {"type": "read", "mbean": mbean} | ({} if attribute is None else {"attribute": attribute})


def _parse(url: str, text: str, expected: int) -> list[dict[str, object]]:
    try:
        answers = json.loads(text)
    except ValueError as error:
        raise Transient(f"{shown(url)}: the answer is not JSON; expected Jolokia", obstacle=Obstacle.ANOTHERS) from error
    if not isinstance(answers, list) or len(answers) != expected or not all(isinstance(a, dict) for a in answers):
        message = f"{shown(url)}: expected a list of {expected} answers, as Jolokia gives to a bulk request"
        raise Transient(message, obstacle=Obstacle.ANOTHERS)
    return answers


def _value(url: str, request: dict[str, str], answer: dict[str, object]) -> object:
    """Each element has a status of its own; 404: no such MBean, or it lacks the attribute. A null is neither."""
    match answer.get("status"):
        case 200 if answer.get("value") is not None:
            return answer["value"]
        case 404:
            return None
        case status:
            obstacle = Obstacle.FORBIDDEN if status in {401, 403} else None
            raise Transient(f"{shown(url)}: {request['mbean']} cannot be read (status {status})", obstacle=obstacle)


def _attributes(url: str, raft: object) -> dict[str, object]:
    if raft is None:
        return dict.fromkeys(RAFT_ATTRIBUTES)
    if not isinstance(raft, dict):
        raise Transient(f"{shown(url)}: {RAFT} has no attributes")
    if any(attribute in raft and raft[attribute] is None for attribute in RAFT_ATTRIBUTES.values()):
        raise Transient(f"{shown(url)}: {RAFT} has an attribute without a value")
    return {field: raft.get(attribute) for field, attribute in RAFT_ATTRIBUTES.items()}


def _app_info(url: str, app_info: object) -> dict[str, dict[str, object]]:
    """Attributes by MBean; none where there is none yet."""
    if app_info is None:
        return {}
    if not isinstance(app_info, dict) or not all(isinstance(found, dict) for found in app_info.values()):
        raise Transient(f"{shown(url)}: {APP_INFO} has no attributes")
    return app_info


def _version(url: str, app_info: dict[str, dict[str, object]]) -> str | None:
    versions = {str(found[key]) for found in app_info.values() for key in ("version", "Version") if key in found}
    if len(versions) > 1:
        raise Transient(f"{shown(url)}: app-info names {len(versions)} versions, expected one")
    return next(iter(versions), None)
