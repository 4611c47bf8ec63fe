"""PF43: a node that is started lives on when keeperless-activities does not."""

from collections.abc import Iterator

from domain.decisions import Finding, Severity
from domain.survey import StartUnit
from domain.zk_to_kraft.checks.seen import Check, Surveyed, unverifiable

CODE, OBJECT = "PF43", "keeperless-activities"
EXPECTED = "nodes outlive it: KillMode=process"


def why_they_would_end(unit: StartUnit) -> str:
    """In words, where a stop of that unit would end what was started in it; else empty."""
    if unit.kill_mode in {"process", "none"}:
        return ""
    told = f"KillMode={unit.kill_mode}" if unit.kill_mode else "whose KillMode `systemctl show` does not tell"
    return f"what it starts is in the control group of {unit.name}, {told}: a stop or restart of that unit ends those nodes too"


def how_to_outlive(unit: StartUnit) -> str:
    systemctl = "systemctl --user" if unit.is_users else "systemctl"
    return (
        f"`{systemctl} edit {unit.name}`: KillMode=process below [Service]; `{systemctl} daemon-reload`. It holds for what "
        "runs, nothing has to be restarted."
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
    for unit in units:
        if why := why_they_would_end(unit):
            yield Finding(code=CODE, object=OBJECT, observed=why, expected=EXPECTED, fix=how_to_outlive(unit))


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
