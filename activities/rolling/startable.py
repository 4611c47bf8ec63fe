"""Whether nodes that run could be stopped, and start again. Asked right before, of what a process has in memory and nobody has
on disk any more, which no look tells: it goes on without its jars, and asks ZooKeeper for the cluster's id only as it starts.
"""

import re
from collections.abc import Sequence

from activities.concurrently import all_of
from activities.node_files import properties_of
from activities.observing.coordinators import counted_by_brokers
from activities.observing.node_survey import CannotLook, start_place
from activities.observing.observe import installed_jars
from activities.observing.topics import forgotten_topics
from activities.observing.zookeeper_view import BROKER_IDS, cluster_id_in
from activities.on_node.look_at_start import FILTERED
from activities.on_node.watch_process import ends_by
from activities.ports.nodes import NodeDriver
from activities.ports.ports import Ports
from activities.ports.zookeeper import session
from activities.rolling.inter_broker import why_others_not_found
from activities.rolling.marking import Target
from activities.survey.java_trials import try_java
from activities.survey.start_commands import overrides_of
from domain.checks.acceptance import blockers_in
from domain.checks.check import some
from domain.checks.coordinator_counts import miscounted
from domain.checks.java import unstartable
from domain.checks.own_process import beside
from domain.checks.service_unit import (
    ending_with,
    filtered,
    kept_out,
    short_lived,
    shut_out,
    unwritable,
    with_small_files,
    without_code,
)
from domain.checks.unapplied import outvoting
from domain.cluster import NodeSpec, Role
from domain.contracts import StepRequest
from domain.diagnosis.logs.connecting import LIFT_QUOTA
from domain.diagnosis.machines.signs import MEND_DEAFNESS, end_of_deaf
from domain.errors import KeeperlessError, Transient
from domain.observed.observation import Process
from domain.policy import MigrationPolicy
from domain.records import ClusterRecord
from domain.rolling.change import Restart, Rolls
from domain.rolling.own_file import whose_else

SCRIPT, FIRST_LINE = b"#!", 256
CODEC = re.compile(rb"(/\S*)/(?:snappy-[\d.]+-\S+-libsnappyjava|libzstd-jni-\S+|liblz4-java-\S+)\.so")
"""In proc(5)'s `maps`: snappy-java, zstd-jni and lz4-java, as they unpack themselves."""
PROC_BYTES = 8 * 1024 * 1024
ZIP = b"PK"
"""How a jar begins."""
UNTIL = "Nothing was stopped: the node runs, and would not start again."


async def why_not_startable(
    cluster: ClusterRecord,
    nodes: Sequence[NodeSpec],
    into: Restart,
    policy: MigrationPolicy,
    ports: Ports,
    *,
    is_back: bool = False,
) -> str | None:
    """`None` where they could. Who does not run is not asked about: a node that is down can only win. `is_back`: on the way
    back, where half of it is the worst place to rest.
    """
    processes = await all_of(*(ports.drivers.driver(node).process() for node in nodes))
    running = [node for node, process in zip(nodes, processes, strict=True) if process.is_running]
    names = ", ".join(cluster.spec.node_name(node.id) for node in running)
    try:
        seen = [(node, process) for node, process in zip(nodes, processes, strict=True) if process.is_running]
        asked = [_why_not_installed(cluster, node, ports) for node in running]
        asked += [_why_not_its_program(cluster, node, ports) for node in running]
        asked += [_why_no_codecs(cluster, node, process, ports) for node, process in seen]
        asked += [_why_not_stoppable(cluster, node, process, ports) for node, process in seen]
        asked += [_why_not_its_own_file(cluster, node, ports) for node in running]
        asked += [_why_not_outlived(cluster, node, process, policy, ports) for node, process in seen]
        if brokers := [node for node in running if cluster.spec.role(node.id) is Role.BROKER]:
            asked.append(why_others_not_found(cluster, brokers, ports))
        if into.registers_in_zookeeper and brokers:
            asked.append(_why_not_of_cluster(cluster, names, ports))
        if brokers and not is_back:
            asked.append(_why_coordinators_would_disagree(cluster, names, policy, ports))
        if into.takes_topics_of_zookeeper and brokers:
            asked.append(_why_topics_would_go(cluster, names, ports))
        whys = await all_of(*asked)
    except KeeperlessError as error:
        return f"{names}: whether it could start again is not known: {error}"
    return next((why for why in whys if why is not None), None)


async def why_not_startable_as(request: StepRequest, ports: Ports, target: Target, process: Process, text: str) -> str | None:
    """Why this node, which runs, would not start with that text of its file. `None` also where it cannot be tried: the
    preflight has said so. On the way back only the file counts: a stop may make the room that a java lacked, and nobody can
    accept anything there.
    """
    rolls, stage = ports.kinds[request.kind].rolls, request.step.stage
    is_urgent = target.cluster.spec.role(target.node.id) in rolls.restart(stage).urgent
    if not process.is_running or not process.pid.isdecimal() or is_urgent:
        return None
    if request.revert is None and (why := await _why_overridden(request, target, process, rolls)) is not None:
        return why
    try:
        trial = await try_java(target.driver, target.node, int(process.pid), stage, text)
    except CannotLook:
        return None
    except Transient as error:
        return f"{target.name}: whether it could start again is not known: {error}" if request.revert is None else None
    found = unstartable(trial, target.name, target.node)
    is_counted = found is not None and (request.revert is None or trial.refused is not None)
    if found is None or not is_counted or not blockers_in([found], request.policy):
        return None
    return f"{target.name}: {found.observed}. {UNTIL} {found.fix}"


async def _why_overridden(request: StepRequest, target: Target, process: Process, rolls: Rolls) -> str | None:
    """Somebody may have restarted it with another command line since the preflight."""
    found = (await overrides_of(target.driver, target.node, process.pid)).told
    role = target.cluster.spec.role(target.node.id)
    outvoted = outvoting(found, target.name, target.node, role, rolls.is_staged)
    refused = blockers_in(outvoted, request.policy)
    return f"{refused[0].object}: {refused[0].observed}. Nothing was stopped. {refused[0].fix}" if refused else None


async def _why_not_installed(cluster: ClusterRecord, node: NodeSpec, ports: Ports) -> str | None:
    driver = ports.drivers.driver(node)
    if found := await installed_jars(driver, node.kafka_home):
        return await _why_not_whole(cluster, node, driver) or await _why_another_version(cluster, node, found, ports)
    return (
        f"{cluster.spec.node_name(node.id)}: {node.kafka_home}/libs has no Kafka (kafka_2.….jar). {UNTIL} Put the installation "
        "back (a volume that is not mounted, a package that was removed), or correct kafka_home and the start command."
    )


async def _why_not_whole(cluster: ClusterRecord, node: NodeSpec, driver: NodeDriver) -> str | None:
    """An upgrade that was cut off leaves jars that are empty, or not there."""
    folder = f"{node.kafka_home}/libs"
    jars = [name for name in await driver.list_dir(folder) or () if name.endswith(".jar")]
    starts = await all_of(*(driver.read_part(f"{folder}/{name}", 0, len(ZIP)) for name in jars))
    broken = [name for name, start in zip(jars, starts, strict=True) if start != ZIP]
    if not broken:
        return None
    return (
        f"{cluster.spec.node_name(node.id)}: {folder}/{broken[0]} is empty, or not a jar. {UNTIL} Install that version of "
        "Kafka again: an upgrade was cut off, or its volume is full."
    )


async def _why_another_version(cluster: ClusterRecord, node: NodeSpec, found: set[str], ports: Ports) -> str | None:
    """A package that was replaced under a process, which goes on with the jars that it has open. What was looked at before has
    judged the silence of one that tells no version."""
    try:
        runs = (await ports.metrics.read(node.metrics)).kafka_version
    except KeeperlessError:
        return None
    others = [version for version in sorted(found) if _release(version) != _release(runs or version)]
    if not others:
        return None
    return (
        f"{cluster.spec.node_name(node.id)}: it runs Kafka {runs}, and {node.kafka_home}/libs has {some(others)} by now. "
        "Nothing was stopped: the node runs, and would start as another version. Install the version that runs again, and "
        "disable what upgraded it (unattended upgrades, configuration management) until the migration has ended."
    )


def _release(version: str) -> list[str]:
    """As `3.9`: a later patch of it starts, and is what an operator may want."""
    return version.split(".")[:2]


async def _why_not_its_program(cluster: ClusterRecord, node: NodeSpec, ports: Ports) -> str | None:
    """A script whose first line names an interpreter that is not there, as after an edit on Windows, is not found at all."""
    driver, program = ports.drivers.driver(node), node.driver.service.start_command[0]
    if not program.startswith("/"):
        return None
    first = (await driver.read_part(program, 0, FIRST_LINE) or b"").partition(b"\n")[0]
    if not first.startswith(SCRIPT):
        return None
    interpreter = first.removeprefix(SCRIPT).decode(errors="replace").lstrip(" ").split(" ")[0]
    if await driver.read_part(interpreter, 0, 1) is not None:
        return None
    shown = interpreter.replace("\r", "\\r")
    is_of_windows = "\r" in interpreter
    how = f"It has Windows' line ends: sed -i 's/\\r$//' {program}" if is_of_windows else "Put it there, or correct that line"
    return f"{cluster.spec.node_name(node.id)}: {program} is to be run by {shown}, which does not exist. {UNTIL} {how}."


async def _why_no_codecs(cluster: ClusterRecord, node: NodeSpec, process: Process, ports: Ports) -> str | None:
    """Codecs of clients' batches are unpacked into java.io.tmpdir and mapped from there. Where hardening has forbidden that
    since, whoever runs has them, and whoever starts again refuses every such batch. Another user's process may not be looked
    at: then nobody knows, as of one that has needed none so far."""
    driver = ports.drivers.driver(node)
    of_process = f"/proc/{process.pid}"
    try:
        maps = await driver.read_part(f"{of_process}/maps", 0, PROC_BYTES) or b""
        told = await driver.read_part(f"{of_process}/mounts", 0, PROC_BYTES) or b""
    except KeeperlessError:
        return None
    mounts = {
        fields[1]: fields[3].split(",") for line in told.decode(errors="replace").splitlines() if (fields := line.split())
    }
    for folder in sorted({found.decode(errors="replace") for found in CODEC.findall(maps)}):
        above = [mount for mount in mounts if f"{folder}/".startswith(f"{mount.rstrip('/')}/")]
        mount = max(above, key=len, default="/")
        if "noexec" in mounts.get(mount, ()):
            return (
                f"{cluster.spec.node_name(node.id)}: it has loaded its codecs (snappy, zstd or lz4) from {folder}, and {mount} "
                "is mounted noexec by now. Nothing was stopped: the node runs, and would refuse compressed batches once it has "
                f"started again. mount -o remount,exec {mount}, or give its start command another -Djava.io.tmpdir."
            )
    return None


async def _why_not_stoppable(cluster: ClusterRecord, node: NodeSpec, process: Process, ports: Ports) -> str | None:
    """What was started with SIGTERM ignored would be waited for without an end."""
    others = ends_by(await _status(node, process, ports))
    if others is None:
        return None
    return (
        f"{cluster.spec.node_name(node.id)}: its process {process.pid} ignores SIGTERM. Nothing was stopped: the node runs, "
        f"and would not end. {MEND_DEAFNESS} {end_of_deaf(process.pid, others)} Do so while all others serve, "
        "and start it."
    )


async def _why_not_its_own_file(cluster: ClusterRecord, node: NodeSpec, ports: Ports) -> str | None:
    """What a roll makes of another node's file would have that one's directories, with this one's id."""
    what = whose_else(cluster.spec, node, await properties_of(ports.drivers.driver(node), node))
    if what is None:
        return None
    return (
        f"{cluster.spec.node_name(node.id)}: {node.properties_file} has {what}: it is another node's file. {UNTIL} Restore "
        "its own, from your configuration management or from its original in .keeperless."
    )


async def _why_not_outlived(
    cluster: ClusterRecord, node: NodeSpec, process: Process, policy: MigrationPolicy, ports: Ports
) -> str | None:
    """Where that cannot be told, the preflight has asked people about it."""
    try:
        pid = int(process.pid) if process.pid.isdecimal() else None
        place = await start_place(ports.drivers.driver(node), node, pid)
    except CannotLook:
        return None
    unit, name = place.unit, cluster.spec.node_name(node.id)
    if (kept := kept_out(place.denied, name)) is not None:
        return f"{name}: {kept.observed}. {UNTIL} {kept.fix}"
    if place.moved:
        return _why_not_its_data(name, process, place.moved)
    if (other := beside(place.held_by, name, node)) is not None:
        return f"{name}: {other.observed}. Nothing was stopped. {other.fix}"
    found = [] if unit is None else [ending_with(unit) if unit.kill_mode else None, without_code(unit), unwritable(place)]
    found += [short_lived(place), with_small_files(place)]
    if (inherited := filtered(place)) is not None:
        status = await _status(node, process, ports)
        found.append(inherited if status and not FILTERED.search(status) else None)
    if (shut := shut_out(place.unopened, name)) is not None:
        return f"{name}: {shut.observed}. {UNTIL} {shut.fix}"
    refused = blockers_in([one for one in found if one is not None], policy)
    if not refused:
        return None
    return f"{name}: {refused[0].observed}. Nothing was stopped: {refused[0].fix}"


def _why_not_its_data(name: str, process: Process, moved: tuple[str, ...]) -> str:
    """It would start on whatever lies there: a copy of a while ago, of which what was written since is missing."""
    return (
        f"{name}: {some(moved)} leads elsewhere than when its process {process.pid} opened it, which still uses the old "
        f"place. Nothing was stopped: the node runs, and would start on other data. `ls -l /proc/{process.pid}/fd | grep "
        ".lock` shows where its data is: let the link, or the mount, lead there again. If its data is to be moved: stop it, "
        "copy, and start it, while nothing else is in progress."
    )


async def _status(node: NodeSpec, process: Process, ports: Ports) -> str:
    """What the kernel says of it (proc(5)); empty where nobody knows."""
    try:
        status = await ports.drivers.driver(node).read_part(f"/proc/{process.pid}/status", 0, PROC_BYTES)
    except KeeperlessError:
        return ""
    return (status or b"").decode(errors="replace")


async def _why_topics_would_go(cluster: ClusterRecord, names: str, ports: Ports) -> str | None:
    found = await forgotten_topics(cluster, ports)
    if not found:
        return None
    return (
        f"{names}: brokers serve {some(found)}, and ZooKeeper has no such topic in /brokers/topics: its znodes were deleted. "
        "Nothing was stopped: a broker that restarts takes its replicas for strays. GET blockers says what to do."
    )


async def _why_coordinators_would_disagree(
    cluster: ClusterRecord, names: str, policy: MigrationPolicy, ports: Ports
) -> str | None:
    """Only where they agree so far: else each restart brings one more to the number that there is. Where ZooKeeper or a node
    does not tell it, nobody knows."""
    try:
        counted = [found for found in await counted_by_brokers(cluster, ports) if found.agree]
    except KeeperlessError:
        return None
    refused = blockers_in([miscounted(found, cluster.spec) for found in counted], policy)
    if not refused:
        return None
    return f"{names}: {refused[0].object}: {refused[0].observed}. Nothing was stopped: {refused[0].fix}"


async def _why_not_of_cluster(cluster: ClusterRecord, names: str, ports: Ports) -> str | None:
    async with session(ports.zookeepers, cluster) as tree:
        found, has_room = await cluster_id_in(tree), await tree.has_room(BROKER_IDS)
    if not has_room:
        return (
            f"{names}: a hard quota of ZooKeeper's on a znode above {BROKER_IDS} is reached: no broker could register. {UNTIL} "
            f"{LIFT_QUOTA}"
        )
    if found == cluster.spec.cluster_id:
        return None
    told = "does not exist" if found is None else f"says {found}"
    return (
        f"{names}: /cluster/id in ZooKeeper {told}, and its log directories are of cluster {cluster.spec.cluster_id}. {UNTIL} "
        "Write the cluster's id back there (GET blockers has the command)."
    )
