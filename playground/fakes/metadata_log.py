"""What a simulated quorum's log holds, as bytes: `cluster.metadata_log = FakeLog(cluster)`."""

from domain.observed.observation import MigrationGauge
from domain.quorum_log.record_types import RecordType
from playground.fakes.cluster import FakeCluster
from playground.log_bytes import batch, registration

NO_OP = (RecordType.NO_OP.value, b"\0")


class FakeLog:
    """Of the two records of a look the first tells of new topics, the second of the migration's state; then the controllers
    register, and else they are no-ops."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self._content, self._end = b"", 0
        self._topics: set[str] = set()
        self._state: MigrationGauge | None = None
        self._registered: set[int] = set()
        self.stray: tuple[tuple[int, bytes], ...] = ()
        """Further records, which take the places of no-ops at the next looks."""

    def __call__(self, node_id: int) -> bytes:
        quorum = self._cluster.quorum
        if quorum.log_end < self._end:
            self._content, self._end, self._topics, self._state, self._registered = b"", 0, set(), None, set()
        while self._end < quorum.log_end:
            self._content += batch(self._end, [self._next()])
            self._end += 1
        return self._content

    def _next(self) -> tuple[int, bytes]:
        quorum = self._cluster.quorum
        if set(quorum.topics) - self._topics:
            self._topics |= set(quorum.topics)
            return RecordType.TOPIC.value, b"names do not matter"
        if quorum.log_state is not None and quorum.log_state is not self._state:
            self._state = quorum.log_state
            return RecordType.ZK_MIGRATION_STATE.value, bytes((quorum.log_state, 0))
        if self.stray:
            first, *rest = self.stray
            self.stray = tuple(rest)
            return first
        if unregistered := self._cluster.registered_controllers - self._registered:
            self._registered.add(registering := min(unregistered))
            return registration(registering)
        return NO_OP
