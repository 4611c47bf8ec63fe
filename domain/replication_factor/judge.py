"""Whether an assignment may be executed, made by our planner, Cruise Control or a person. It knows no planner."""

from collections.abc import Collection, Iterator

from domain.observed.replicas import Broker
from domain.replication_factor.change import Change, Racks


def why_not(change: Change, factor: int | None, brokers: Collection[Broker]) -> str | None:
    """`None` where it may be. `factor`: what is wanted; `None` where any is, as with an assignment that a person gives."""
    return next(_objections(change, factor, brokers), None)


def _objections(change: Change, factor: int | None, brokers: Collection[Broker]) -> Iterator[str]:
    one, after, by_id = change.partition, change.after, {broker.id: broker for broker in brokers}
    if not after:
        yield f"{one.name}: no broker would have a replica"
    doubled = sorted({i for i in after if after.count(i) > 1})
    if doubled:
        yield f"{one.name}: {_told(doubled)} would have two replicas"
    unknown = [i for i in change.added if i not in by_id]
    if unknown:
        yield f"{one.name}: {_told(unknown)} is not registered, so it cannot take a replica"
    shut = [i for i in change.added if i in by_id and not by_id[i].is_open]
    if shut:
        yield f"{one.name}: {_told(shut)} takes no replicas: it is fenced, shutting down, or all its directories are cordoned"
    if factor is not None and len(after) != factor:
        yield f"{one.name}: it would have {len(after)} replicas, not {factor}"
    if one.leader is None:
        yield f"{one.name}: it has no leader"
    elif one.leader not in after:
        yield f"{one.name}: its leader, broker {one.leader}, would have no replica any more"
    racks = Racks(brokers)
    before, then = len(racks.used(one.in_sync)), len(racks.used(after))
    if then < min(before, len(after)):
        yield f"{one.name}: it would be in {then} racks, where its in-sync replicas are in {before} now"


def _told(brokers: Collection[int]) -> str:
    return ", ".join(f"broker {i}" for i in brokers)
