"""What brokers run with beside what their files say: what somebody has edited since would come into force with our restart."""

from collections.abc import Callable, Sequence
from functools import partial

from activities.concurrently import all_of
from activities.node_files import read_mark, sha256_of
from activities.ports.nodes import FileContent
from activities.ports.ports import Ports
from activities.survey.start_commands import overrides_of
from domain.checks.acceptance import blockers_in
from domain.checks.unapplied import differing, unapplied
from domain.cluster import ClusterSpec, NodeSpec
from domain.configuration.properties import ENCODING, parse
from domain.errors import Permanent, Transient
from domain.observed.observation import Process, RollMark
from domain.observed.survey import StartedWith
from domain.policy import MigrationPolicy
from domain.records import ClusterRecord

Edit = Callable[[str, ClusterSpec, NodeSpec, str], str]
"""As `Rolls.edit`."""


def _edited(edit: Edit, cluster: ClusterRecord, node: NodeSpec, stage: str, text: str) -> str:
    return edit(text, cluster.spec, node, stage)


async def why_not_in_force(
    cluster: ClusterRecord, brokers: Sequence[NodeSpec], stage: str, edit: Edit, policy: MigrationPolicy, ports: Ports
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
    whys = await all_of(
        *(
            _why_one(cluster, node, process, partial(_edited, edit, cluster, node, stage), runs[node.id], ports, policy)
            for node, process in running
        )
    )
    return next((why for why in whys if why is not None), None)


async def _why_one(
    cluster: ClusterRecord,
    node: NodeSpec,
    process: Process,
    edited: Callable[[str], str],
    runs: StartedWith,
    ports: Ports,
    policy: MigrationPolicy,
) -> str | None:
    driver = ports.drivers.driver(node)
    file, mark = await driver.read_file(node.properties_file), await read_mark(driver, node.properties_file)
    if file is None or (mark is not None and _is_just_written(mark, file, process)):
        return None
    given, lines = (await overrides_of(driver, node, process.pid)).given, parse(file.content.decode(ENCODING))
    edits = unapplied(edited, lines, runs, given)
    found = differing(cluster.spec.node_name(node.id), node.properties_file, edits)
    if found is None or not blockers_in([found], policy):
        return None
    return f"{found.object}: {found.observed}. Nothing was stopped: the restart would apply that. {found.fix}"


def _is_just_written(mark: RollMark, file: FileContent, process: Process) -> bool:
    """By a roll that has not stopped it yet."""
    return mark.written_sha256 == sha256_of(file.content) and mark.before_identity == process.identity
