"""The ports: all that activities need of the world. A new adapter is written from this file and its conformance suite.

Every call has its own time limit and raises `Transient` when the other side does not answer in it, `Permanent` when the
input can never work. Absence is an answer (`None`), never an error. All calls may be repeated.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from domain.cluster import MetricsEndpoint, NodeSpec, ZooKeeperMemberSpec
from domain.drift.message_manifest import NodeWalked
from domain.drift.messages import ReplicaLog, Sight
from domain.drift.report import CheckName, DriftFinding, DriftReport, RecordCounts, Verdict
from domain.drift.tolerations import Toleration
from domain.metadata_log import EndOfCopy
from domain.observation import KafkaView, NodeMetrics, Process
from domain.offsets import GroupOffset, PartitionOffsets
from domain.plans import MeasuredStep, Plan
from domain.records import ClusterRecord, Command, EventDraft, MigrationRecord, Progress
from domain.survey import BrokerLogDir
from domain.zk_to_kraft.causes import Serving

if TYPE_CHECKING:
    from activities.capturing import Captured
    from activities.rehearsal.messages import Ended, Failed, NotIsolated, Order, Ready, Trying


@dataclass(frozen=True)
class FileContent:
    """A file's bytes with what must survive an edit: permission bits and owner (numeric ids)."""

    content: bytes
    mode: int
    uid: int
    gid: int


@dataclass(frozen=True)
class Completed:
    """A finished program: exit code and both outputs, decoded."""

    exit_code: int
    output: str
    errors: str


class NodeDriver(Protocol):
    """One node: its files, its programs, its process. Paths are the node's own."""

    async def read_file(self, path: str) -> FileContent | None:
        """The file, or `None` when it does not exist."""

    async def write_file(self, path: str, file: FileContent) -> None:
        """Replace or create, atomically (a reader sees the old bytes or the new), durably, parents included (0700)."""

    async def remove_file(self, path: str) -> None:
        """Remove one file; not there is fine."""

    async def read_part(self, path: str, offset: int, length: int) -> bytes | None:
        """Up to `length` bytes from `offset`, fewer at the file's end; `None` when it does not exist."""

    async def rename(self, old: str, new: str) -> None:
        """Give a file another name on the same file system, atomically and durably, replacing what has it.

        `old` not there is fine when `new` is: done already. `Permanent` when neither is there.
        """

    async def remove_tree(self, path: str) -> None:
        """Remove a directory with all that is in it, following no link; not there is fine."""

    async def list_dir(self, path: str) -> tuple[str, ...] | None:
        """Names in a directory, sorted, or `None` when it does not exist."""

    async def make_dir(self, path: str) -> None:
        """Create a directory with its parents; there already is fine."""

    async def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], timeout: timedelta, stdin: bytes = b""
    ) -> Completed:
        """Run a program to its end. A program that outlives `timeout` is ended, and `Transient` raised.

        Secrets are given in `stdin`, which the program may open again as `/dev/stdin`, or in `environment`: both stay between
        us and the program, as a command line does not.
        """

    async def process(self) -> Process:
        """The node's process, alive or not. A zombie is not alive; a recycled pid is not the node's."""

    async def start(self) -> None:
        """Start the process, detached from us. Running already is fine. Does not wait for it to serve."""

    async def stop(self, identity: str, deadline: timedelta) -> None:
        """Ask the process with this identity to stop cleanly, and wait. Gone already is fine, and its successor is left alone.

        `Transient` after the deadline; never kills.
        """

    async def kill(self, identity: str, deadline: timedelta) -> None:
        """SIGKILL the process with this identity, and wait until it is gone. Gone already is fine, its successor is left alone.

        `Transient` after the deadline.
        """

    async def output_tail(self, lines: int) -> tuple[str, ...]:
        """The last lines that the process printed; empty when there are none."""


class NodeDrivers(Protocol):
    """Gives the driver of a node."""

    def driver(self, node: NodeSpec) -> NodeDriver: ...


@dataclass(frozen=True)
class Znode:
    """A znode's data with its version, the session that owns it (0: persistent), and its creation by the ensemble's clock.

    `modified_zxid`: of the transaction that wrote the data last (mzxid); -1 where nobody asked for it.
    """

    data: bytes
    version: int
    ephemeral_owner: int
    created_at: datetime | None = None
    modified_zxid: int = -1


@dataclass(frozen=True)
class SetZnode:
    """Replace a znode's data, if it still has this version."""

    path: str
    data: bytes
    version: int


@dataclass(frozen=True)
class DeleteZnode:
    """Delete a znode, if it still has this version."""

    path: str
    version: int


@dataclass(frozen=True)
class CreateZnode:
    """Create a persistent znode, if there is none, protected as the znode `like` is. That one must be there before."""

    path: str
    data: bytes
    like: str


ZnodeChange = SetZnode | DeleteZnode | CreateZnode


@dataclass(frozen=True)
class Access:
    """One entry of a znode's access list: whom it is for, and whether it lets them do everything."""

    scheme: str
    identity: str
    is_everything: bool


class ZooKeeperTree(Protocol):
    """The tree below the cluster's chroot. One instance is one session; close it."""

    async def get(self, path: str) -> Znode | None:
        """A znode, or `None` when it does not exist."""

    async def get_many(self, paths: Sequence[str]) -> tuple[Znode | None, ...]:
        """Many znodes, in the order asked for."""

    async def children(self, path: str) -> tuple[str, ...] | None:
        """Names of the children, sorted, or `None` when the znode does not exist."""

    async def access(self, path: str) -> tuple[Access, ...] | None:
        """A znode's access list, or `None` when it does not exist."""

    async def sync(self) -> None:
        """Make the server of this session catch up with the ensemble's leader: later reads have all that was done before."""

    async def commit(self, changes: Sequence[ZnodeChange]) -> bool:
        """Make all changes in one transaction, or none: false when a znode was gone, had another version, or was there already.

        `Transient` when the answer was lost: then it may have happened or not, and only a look can tell, through another
        session: this one is closed, so that what was not sent yet never will be. `Permanent` where something else forbids it.
        """

    async def rehearse(self, changes: Sequence[SetZnode | DeleteZnode]) -> None:
        """`Permanent` where `commit` would be forbidden, change by change. Changes nothing."""

    async def close(self) -> None: ...


class ZooKeepers(Protocol):
    """Opens the tree of a cluster, and asks single servers."""

    async def connect(self, cluster: ClusterRecord) -> ZooKeeperTree: ...

    async def ask(self, server: str, word: str) -> str | None:
        """The answer of one server (`host:port`) to a word of four letters; `None` when it is not on its whitelist."""


@dataclass(frozen=True)
class Led:
    """A topic as one broker knows it: the leader of each partition, `None` where there is none, and its replicas in order."""

    leaders: dict[int, int | None]
    replicas: dict[int, tuple[int, ...]]


class KafkaClient(Protocol):
    """Does what clients do. Each call asks the broker with this id; what only the controller may do goes to whom that broker
    names as controller. `Transient` also where a broker refuses it, with the error's name; `Permanent` where we have no right
    to it, or where no topic may be deleted; `Absent` where there is no such topic. Close it."""

    async def alive(self) -> tuple[int, ...]:
        """Brokers that are registered, in order."""

    async def topics(self, broker: int) -> tuple[str, ...]:
        """Names of all topics that this broker knows, reserved ones included."""

    async def led(self, topic: str, broker: int | None = None) -> Led | None:
        """`None` where this broker, or without one any, does not know the topic."""

    async def create_topic(
        self,
        broker: int,
        topic: str,
        assignment: Sequence[Sequence[int]],
        configs: Mapping[str, str],
        *,
        is_trial: bool = False,
    ) -> None:
        """There already is fine. Brokers learn of it later. `is_trial`: see only whether it would be made."""

    async def delete_topic(self, broker: int, topic: str) -> None:
        """Not there is fine. It is gone later."""

    async def set_topic_config(self, broker: int, topic: str, name: str, value: str) -> None: ...

    async def topic_config(self, broker: int, topic: str, name: str) -> str | None: ...

    async def broker_config(self, broker: int, name: str) -> str | None:
        """As the broker runs with it."""

    async def produce(self, broker: int, topic: str, partition: int, value: bytes) -> int:
        """Write one message to the partition's leader, acks=all: its offset."""

    async def fetch(self, broker: int, topic: str, partition: int, offset: int) -> tuple[bytes, ...]:
        """Values from this offset on, as far as the leader has them committed."""

    async def denied_groups(self, broker: int) -> tuple[str, ...] | None:
        """Groups that an ACL of the kind of `deny_group` is about; `None` where the broker has no authorizer."""

    async def deny_group(self, broker: int, group: str) -> None:
        """Add an ACL: the principal of this name may not read the group of this name. There already is fine."""

    async def forget_group(self, broker: int, group: str) -> None:
        """Remove that ACL. Not there is fine."""

    async def scram_users(self, broker: int) -> tuple[str, ...]:
        """Users with a SCRAM credential."""

    async def give_scram(self, broker: int, user: str) -> None:
        """Give a user a SCRAM-SHA-512 credential of random bytes that nobody keeps."""

    async def take_scram(self, broker: int, user: str) -> None:
        """Remove it. Not there is fine."""

    async def close(self) -> None: ...


class KafkaAdmin(Protocol):
    """What brokers say through the Kafka protocol, reserved topics (`domain.canaries`) left out."""

    async def open_client(self, cluster: ClusterRecord) -> KafkaClient:
        """A client with connections of its own."""

    async def view(self, cluster: ClusterRecord) -> KafkaView: ...

    async def log_dirs(self, cluster: ClusterRecord) -> tuple[BrokerLogDir, ...]:
        """Those of every broker that is alive, with whether the broker has given one up."""

    async def offsets(self, cluster: ClusterRecord) -> tuple[PartitionOffsets, ...]:
        """Of every partition, as its leader says. `Transient` while one has none."""

    async def group_offsets(self, cluster: ClusterRecord) -> tuple[GroupOffset, ...]:
        """All that consumer groups have committed. `Transient` while a group's coordinator cannot tell."""

    async def elect_preferred(self, cluster: ClusterRecord) -> int:
        """Make the preferred replica of each partition lead that is in sync and does not: of how many it does now."""


class ClusterMetrics(Protocol):
    """Reads one node's gauges. `Transient` when the endpoint does not answer: unknown, never zero."""

    async def read(self, endpoint: MetricsEndpoint) -> NodeMetrics: ...


class Listeners(Protocol):
    """Looks at a node from outside: a process that somebody started another way is in no pid file, and answers all the same."""

    async def is_answering(self, host: str, port: int) -> bool:
        """Whether anybody accepts connections there. False also when nothing comes back within a second or two."""


class ZooKeeperServers(Protocol):
    """Asks the servers of an ensemble one by one, which a session never does."""

    async def serving(self, host: str, port: int) -> Serving:
        """Whether it serves. Answers within a few seconds, whatever the server does."""


class ArtefactStore(Protocol):
    """Immutable bytes, named by their sha256 (hex)."""

    async def put(self, content: bytes) -> str: ...

    async def get(self, name: str) -> bytes: ...


class Secret:
    """A value that shows itself only through `reveal`."""

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "Secret(***)"

    def reveal(self) -> str:
        return self._value


class SecretStore(Protocol):
    """Resolves references such as `env:NAME` and `file:/path`, at the last moment, every time anew."""

    def resolve(self, reference: str) -> Secret: ...


class Ledger(Protocol):
    """What activities need of the ledger."""

    async def add_report(self, report: DriftReport) -> DriftReport:
        """Publish a check's report, once: where one with this id is there already that one stands, and is the answer."""

    async def report(self, report_id: str) -> DriftReport | None: ...

    async def newest_reports(self, cluster: str, check: CheckName) -> list[DriftReport]:
        """Those of this check, whoever asked for them, of which one has looked last; among the conclusive ones too."""

    async def newest_report(self, migration_id: str, check: CheckName) -> DriftReport | None:
        """The one of this check that this migration has had last."""

    async def baseline(self, cluster: str, migration_id: str | None = None) -> DriftReport | None:
        """The first usable baseline that this migration has kept; without a migration, the cluster's newest.

        Where none is usable, the newest that is not.
        """

    async def drifts_found(self, cluster: str, check: CheckName) -> int:
        """How many reports of this check ever found a drift. It only grows."""

    async def add_plan(self, plan: Plan) -> Plan:
        """Publish a plan, once: where one with this id is there already that one stands, and is the answer."""

    async def plan(self, plan_id: str) -> Plan | None: ...

    async def measured_steps(self, cluster: str) -> list[MeasuredStep]:
        """How long restarts of this cluster's nodes have taken in its migrations, the newest first."""

    async def cluster(self, name: str) -> ClusterRecord | None: ...

    async def migration(self, migration_id: str) -> MigrationRecord | None: ...

    async def claim(self, migration_id: str, run_id: str, at: datetime) -> int | None:
        """Take the cluster for this run: its generation. The same run gets the same answer again.

        `None` when the migration belongs to another run or has ended.
        """

    async def generation(self, cluster: str) -> int:
        """The generation that holds the cluster now. An effect of another one must not happen."""

    async def command(self, command_id: str) -> Command | None: ...

    async def commands(self, migration_id: str) -> list[Command]:
        """A migration's commands, oldest first."""

    async def add_command(self, command: Command) -> None:
        """Write a command; one with the same id is the same command."""

    async def mark_refused(self, command_id: str, because: str) -> None:
        """The workflow has refused the command. The first reason stands."""

    async def consume_command(self, command_id: str, at: datetime) -> None:
        """Mark an approval as used by an irreversible effect; used already is fine."""

    async def record(
        self, migration_id: str, events: Sequence[EventDraft], progress: Progress | None, as_of: datetime | None = None
    ) -> None:
        """Append events (a key seen before is skipped) and set the progress, in one transaction.

        Progress that was true (`as_of`) before what is stored is passed over.
        """


@dataclass(frozen=True)
class Comparison:
    """What is compared: `staged`, rows of ZooKeeper, with the image that `log`, a copy of `__cluster_metadata-0`, had before
    offset `cut`, and all versions from there to `end`. `out`: a new, private directory.
    """

    id: str
    staged: Path
    log: Path
    cut: int
    end: int
    out: Path
    tolerated: tuple[Toleration, ...] = ()
    is_copy: bool = False
    """`staged` is of the time of the copy, which `cut`, the same as `end`, is the end of."""


@dataclass(frozen=True)
class Claimed:
    """KRaft's claim of `/controller`. `zxid`: its transaction, -1 where it was not for the copy. `at`: ZooKeeper's time."""

    zxid: int
    at: datetime | None


@dataclass(frozen=True)
class KeptRows:
    """Rows as one file, to be compared with later. `counts`: by kind. `not_read`: what they lack."""

    packed: bytes
    counts: dict[str, int]
    not_read: tuple[str, ...]


@dataclass(frozen=True)
class Compared:
    """What was found. `findings`: a file with all of them, below the comparison's `out`, or `None` where nothing was compared;
    `first`: the gravest. `tolerated`: the tolerations that were used, as `comparison.names_of` names them. `engine`: who has
    compared.
    """

    verdict: Verdict
    counts: dict[str, RecordCounts]
    first: tuple[DriftFinding, ...]
    not_read: tuple[str, ...]
    findings: Path | None
    content_hash: str
    rules_fingerprint: str
    tolerated: tuple[str, ...]
    engine: str
    seconds: dict[str, float]


class CheckRunner(Protocol):
    """Makes rows and compares them. A session is one comparison's, by a name (a UUID) that is known before it is opened."""

    async def interrupt(self, session: str) -> None:
        """End all that runs in a session, and close it for good. Any number of times; one that never was is fine."""

    async def stage(self, captured: "Captured", directory: Path) -> None:
        """Rows of what a live tree has, into a new directory. Secrets become digests here, before any row exists."""

    async def keep(self, captured: "Captured", directory: Path) -> KeptRows:
        """The same of what Kafka is going to copy, by way of a new directory."""

    async def end_of_copy(self, log: Path) -> EndOfCopy | None:
        """Where Kafka's copy ends in what is left of the quorum's log; `None` where that does not tell of one."""

    async def as_of_claim(self, kept: bytes, captured: "Captured", claimed: Claimed, directory: Path) -> None:
        """Rows as the tree was when KRaft claimed it: into `directory`, which is new. `kept`: rows of before."""

    async def compare(self, asked: Comparison, session: str, on_progress: Callable[[str, int, int], None]) -> Compared:
        """Compare. `on_progress`: stage, tasks done, tasks in all; called often, in any thread. Cancelled, it ends its work.

        `Permanent`: a side is damaged, or the log before `cut` is not there any more.
        """

    async def confirm(self, asked: Comparison, earlier: Compared, later: Compared) -> tuple[Compared, int]:
        """`later` with those of its differences only that `earlier` had just the same, and how many others it had. They moved
        between two looks. `asked`: has a directory of its own."""


@dataclass(frozen=True)
class WalkedNode:
    """What the walk of one broker's segments has told. `batches`: a Parquet file. `moved`: logs that did not hold still."""

    replicas: tuple[ReplicaLog, ...]
    batches: bytes
    moved: tuple[str, ...]
    walked: NodeWalked


@dataclass(frozen=True)
class MessageComparison:
    """Two looks at clients' data, their batches as Parquet files. `out`: a new, private directory."""

    id: str
    before: Sight
    after: Sight
    before_batches: tuple[Path, ...]
    after_batches: tuple[Path, ...]
    out: Path
    tolerated: tuple[Toleration, ...] = ()
    not_read: tuple[str, ...] = ()


class MessageRunner(Protocol):
    """Makes rows of what a node told, and compares them with earlier ones."""

    async def read_walk(self, broker: int, output: str) -> WalkedNode:
        """`Transient`: the answer is not whole."""

    async def compare(self, asked: MessageComparison, session: str) -> Compared:
        """`session`: as in `CheckRunner.compare`."""


class MemberFiles(Protocol):
    """The files of one server of the ensemble, to be read only. As in `NodeDriver`."""

    async def list_dir(self, path: str) -> tuple[str, ...] | None: ...

    async def read_part(self, path: str, offset: int, length: int) -> bytes | None: ...


class ZooKeeperMembers(Protocol):
    """Gives the files of a server of the ensemble."""

    def files(self, member: ZooKeeperMemberSpec) -> MemberFiles: ...


class RehearsalRoom(Protocol):
    """Where a copy is rehearsed, and nothing of the world can be reached (`activities.rehearsal.messages`)."""

    async def order(self, order: "Order") -> None:
        """Begin. The copied files, and the controller's, lie in the room's directory."""

    async def told(self) -> "Ready | NotIsolated | Trying | Failed | Ended":
        """The next thing that is told. `Transient` where the room is gone."""


class RehearsalRooms(Protocol):
    """Opens rooms on the machine of this worker."""

    def open(self, directory: Path) -> AbstractAsyncContextManager[RehearsalRoom]:
        """A room that works in `directory`, which is private. When it is left, or whoever opened it dies, all that runs in it
        ends, and the directory is removed. `Permanent`, with the reason, where this machine cannot isolate one.
        """

    def java(self, home: str | None) -> str:
        """This machine's `java`. `Permanent` where there is none."""

    def libs(self, kafka_home: str) -> str:
        """This machine's folder of Kafka's jars. `Permanent` where there is none."""
