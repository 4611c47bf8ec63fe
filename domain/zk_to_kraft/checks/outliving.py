"""PF43: a node that is started lives on when keeperless-activities does not."""

from collections.abc import Iterator

from domain.decisions import Finding, Severity
from domain.survey import StartUnit
from domain.zk_to_kraft.checks.seen import Check, Surveyed, unverifiable

CODE = "PF43"
EXPECTED = "nodes outlive it: KillMode=process"


def ending_with(unit: StartUnit) -> Finding | None:
    """Where a stop of that unit would end what was started in it, or nobody tells."""
    if unit.kill_mode in {"process", "none"}:
        return None
    told = f"KillMode={unit.kill_mode}" if unit.kill_mode else "whose KillMode `systemctl show` does not tell"
    systemctl = "systemctl --user" if unit.is_users else "systemctl"
    return Finding(
        code=CODE,
        object="keeperless-activities",
        observed=f"what it starts is in the control group of {unit.name}, {told}: a stop or restart of that unit ends those "
        "nodes too",
        expected=EXPECTED,
        fix=f"`{systemctl} edit {unit.name}`: KillMode=process below [Service]; `{systemctl} daemon-reload`. It holds for what "
        "runs, nothing has to be restarted.",
    )


def _outlived(seen: Surveyed) -> Iterator[Finding]:
    """Once for each unit: it is mostly the same for all nodes."""
    looks = {node.id: seen.node(node.id).look for node in seen.spec.nodes}
    for node_id, look in looks.items():
        if look is None:
            name = seen.name(node_id)
            fix = (
                "Make python3 available to the driver on the node, or see to KillMode=process yourself and accept this finding."
            )
            yield unverifiable(CODE, name, seen.survey.why_missing(f"look at {name}"), EXPECTED, fix, Severity.BLOCKER)
    units = dict.fromkeys(look.unit for look in looks.values() if look is not None and look.unit is not None)
    yield from filter(None, map(ending_with, units))


CHECKS = (
    Check(
        code=CODE,
        holds="nodes that keeperless-activities starts are not ended with it",
        because="systemd ends all that is in the control group of a unit with it, unless its KillMode says otherwise: a "
        "restart of ours would stop every node that was restarted so far, at once",
        source="the control group of what is run on the node, `systemctl show --property=KillMode`",
        unverifiable="python3 cannot be run on the node",
        of_survey=(_outlived,),
    ),
)
