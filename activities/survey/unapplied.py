"""What brokers run with beside what their files say: what somebody has edited since would come into force with our restart."""

from collections.abc import Mapping, Sequence

from activities.node_files import read_mark, sha256_of
from activities.ports.nodes import FileContent
from activities.ports.ports import Ports
from activities.survey.start_commands import Overrides, overrides_of
from activities.together import all_of
from domain.checks.acceptance import blockers_in
from domain.cluster import ClusterSpec, NodeSpec
from domain.configuration.properties import ENCODING, parse
from domain.decisions import NodeStage
from domain.errors import Permanent, Transient
from domain.observed.observation import Process, RollMark
from domain.observed.survey import StartedWith, Unapplied
from domain.policy import MigrationPolicy
from domain.records import ClusterRecord
from domain.zk_to_kraft.checks.unapplied import differing, unapplied


def unapplied_edits(
    spec: ClusterSpec,
    node: NodeSpec,
    process: Process | None,
    file: Mapping[str, str],
    runs: StartedWith | None,
    overrides: Overrides,
) -> tuple[Unapplied, ...] | None:
    """Of the first restart; `None` where nobody told what it runs with."""
    if runs is None or process is None:
        return None
    return unapplied(spec, node, NodeStage.MIGRATION, file, runs, overrides.given)


async def why_not_in_force(
    cluster: ClusterRecord, brokers: Sequence[NodeSpec], stage: NodeStage, policy: MigrationPolicy, ports: Ports
) -> str | None:
    """Of those that run, on the way forward. Of whom we may not ask the preflight has told; a file that this very roll has
    written, and not yet put into force, is ours."""
    processes = await all_of(*(ports.drivers.driver(node).process() for node in brokers))
    running = [(node, process) for node, process in zip(brokers, processes, strict=True) if process.is_running]
    if not running:
        return None
    try:
        runs = await ports.kafka.started_with(cluster, [node.id for node, _ in running])
    except Permanent:
        return None
    except Transient as error:
        return f"whether their files are in force is not known: {error}"
    whys = await all_of(*(_why_one(cluster, node, process, stage, runs[node.id], ports, policy) for node, process in running))
    return next((why for why in whys if why is not None), None)


async def _why_one(
    cluster: ClusterRecord,
    node: NodeSpec,
    process: Process,
    stage: NodeStage,
    runs: StartedWith,
    ports: Ports,
    policy: MigrationPolicy,
) -> str | None:
    driver = ports.drivers.driver(node)
    file, mark = await driver.read_file(node.properties_file), await read_mark(driver, node.properties_file)
    if file is None or (mark is not None and _is_just_written(mark, file, process)):
        return None
    given, lines = (await overrides_of(driver, node, process.pid)).given, parse(file.content.decode(ENCODING))
    edits = unapplied(cluster.spec, node, stage, lines, runs, given)
    found = differing(cluster.spec.node_name(node.id), node.properties_file, edits)
    if found is None or not blockers_in([found], policy):
        return None
    return f"{found.object}: {found.observed}. Nothing was stopped: the restart would put that into force. {found.fix}"


def _is_just_written(mark: RollMark, file: FileContent, process: Process) -> bool:
    """By a roll that has not stopped it yet."""
    return mark.written_sha256 == sha256_of(file.content) and mark.before_identity == process.identity
