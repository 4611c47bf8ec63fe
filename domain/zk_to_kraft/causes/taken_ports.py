"""Ports that a process could not bind, by its log, and what is told of whoever has them. Pure.

Who has a port may be a node or a member of the specification that is well: then that one is not to be ended.
"""

import re
from collections.abc import Iterator, Sequence

from domain.cluster import servers_in
from domain.diagnosis.logs.lines import of_this_process
from domain.diagnosis.logs.members import of_last_start
from domain.diagnosis.machines.vital_signs import PortHolder, Sign
from domain.observed.observation import NodeView
from domain.zk_to_kraft.causes.case import Looked

FAILED = re.compile(r"BindException|[Aa]ddress already in use|Port already in use|failed to bind to")
EXACT = re.compile(
    r"(?:failed to bind to|listening to address|Couldn't bind to) \S*:(\d{1,5})\b|Port already in use: (\d{1,5})\b"
)
BEFORE = re.compile(r"binding to port \S*:(\d{1,5})\b")
"""What ZooKeeper says before it tries, at its client port."""


def ports_not_bound(lines: Sequence[str]) -> tuple[int, ...]:
    """Of the process that printed these lines last."""
    own = of_last_start(of_this_process(lines))
    if not any(FAILED.search(line) for line in own):
        return ()
    exact = [found[1] or found[2] for line in own if (found := EXACT.search(line))]
    before = [found[1] for line in own if (found := BEFORE.search(line))]
    return tuple(dict.fromkeys(int(port) for port in exact or before[-1:]))


def signs_of_holders(looked: Looked, name: str) -> Iterator[Sign]:
    """Of a node, or of a server of the ensemble, by its name."""
    view = next((view for view in looked.observation.nodes if looked.name(view.id) == name), None)
    for found in looked.hints.holders.get(name, ()):
        if view is not None and view.is_unowned:
            yield _of_its_own(looked, view, found) or _of_unowned(found)
            continue
        whose = _whose(looked, name, found)
        if found.peer is not None:
            yield Sign(
                f"port {found.port} is the near end of a connection to {found.peer}{_process(found)}: nobody listens there",
                f"Start it again: such a connection ends by itself. Keep the port out of those that the kernel gives away: "
                f"net.ipv4.ip_local_reserved_ports={found.port} (sysctl), or a listener below net.ipv4.ip_local_port_range.",
            )
        elif whose == name and name in looked.hints.signs:
            continue  # it runs, and has its own port
        elif whose == name:
            yield Sign(
                f"an earlier process of its own has port {found.port}{_process(found)}",
                "It was started twice, or not by its start command. Where that process serves, leave it as it is, and put its "
                f"number into the pid file; else end it in order (kill {found.pid}), and start it once that has ended.",
            )
        elif whose:
            yield Sign(
                f"{whose} has port {found.port}{_process(found)}",
                f"Leave {whose} as it is. Two have one port: compare the listeners of both, or, of ZooKeeper's servers, the "
                "server.N lines and dataDir/myid; correct that of the one that does not start.",
            )
        else:
            yield Sign(f"port {found.port} is taken{_process(found)}", "")


def _of_its_own(looked: Looked, view: NodeView, found: PortHolder) -> Sign | None:
    """Of the process that was started last as the specification says; `None` of another one."""
    last = view.process.last_identity if view.process is not None else None
    if last is None or last.partition("@")[0] != str(found.pid):
        return None
    pid_file = looked.spec.node(view.id).driver.service.pid_file
    return Sign(
        f"who answers there is its process of before{_process(found)}: only its pid file is gone, or was written by somebody",
        f"Write its number back: `echo {found.pid} > {pid_file}`. Stop nothing. Find who takes such files away, or it happens "
        "again: a cleaner of old files (systemd-tmpfiles, tmpwatch), a restore, a deployment.",
        is_cure=True,
    )


def _of_unowned(found: PortHolder) -> Sign:
    """It serves, and was not started as the specification says."""
    who = f"who answers there is {_process(found).removeprefix(', by ') or 'a process that may not be looked at'}"
    if not found.started_by:
        return Sign(who, "")
    return Sign(
        f"{who}, started by {found.started_by}",
        f"First switch off {found.started_by}, until the migration has ended: a supervisor (monit, supervisord), a unit's "
        "Restart=, a watchdog or a person starts the node besides, and whoever is first has its directory and its ports.",
    )


def _process(found: PortHolder) -> str:
    return f", by process {found.pid} ({found.command})" if found.pid is not None else ""


def _whose(looked: Looked, name: str, found: PortHolder) -> str:
    """The node or member whose process it is; empty where it is nobody's of the specification. On one host paths tell them
    apart."""
    spec = looked.spec
    nodes = {spec.node_name(node.id): node for node in spec.nodes}
    members = {f"zookeeper {address}": spec.zookeeper.member(address) for address in servers_in(spec.zookeeper.connect)}
    own = nodes.get(name) or members.get(name)
    words = found.command.split()
    alike = [one for one, node in nodes.items() if own and node.host == own.host and node.properties_file in words]
    alike += [one for one, its in members.items() if own and its and its.host == own.host and its.data_dir == found.data_dir]
    return name if name in alike else next(iter(alike), "")
