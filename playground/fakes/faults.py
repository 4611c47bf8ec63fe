"""What can be wrong with a simulated cluster. Tests set and clear these at any time."""

from dataclasses import dataclass, field


@dataclass
class Faults:
    """`silent_*`: does not answer (`Transient`), whatever its state. Numbers are node ids."""

    silent_zookeeper: bool = False
    silent_kafka: bool = False
    mute_brokers: set[int] = field(default_factory=set)
    """They take connections, and answer no request on them; all else of them is well."""
    led_elsewhere: dict[int, int] = field(default_factory=dict)
    """Brokers at whose addresses another one answers, and which."""
    silent_nodes: set[int] = field(default_factory=set)
    """The node's driver: files and process."""
    silent_servers: set[str] = field(default_factory=set)
    """Servers of the ensemble, as `host:port`, each by itself."""
    words: set[str] = field(default_factory=lambda: {"srvr", "cons"})
    """Words of four letters on the whitelist of ZooKeeper's servers."""
    foreign_clients: dict[int, str] = field(default_factory=dict)
    """Sessions of others in ZooKeeper, and their addresses."""
    offline_dirs: set[str] = field(default_factory=set)
    """Log directories that their brokers have given up."""
    unreachable_hosts: set[str] = field(default_factory=set)
    """By name, from every node."""
    silent_metrics: set[int] = field(default_factory=set)
    unreached: set[int] = field(default_factory=set)
    """Controllers whose listener accepts nobody, as behind a firewall: they follow all the same."""
    dies_at_start: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The process prints these lines and is gone at once."""
    ignores_stop: set[int] = field(default_factory=set)
    """SIGTERM has no effect."""
    survives_kill: set[int] = field(default_factory=set)
    """SIGKILL has no effect yet: a process that hangs in the kernel."""
    never_pauses: set[int] = field(default_factory=set)
    """Configuration management goes on, whatever it is told."""
    never_resumes: set[int] = field(default_factory=set)
    says_nothing_of_pauses: set[int] = field(default_factory=set)
    """Asked whether it is paused, its hook fails."""
    loses_commit_answer: bool = False
    """A ZooKeeper transaction happens, and its answer is lost (`Transient`)."""
    forbidden_znodes: set[str] = field(default_factory=set)
    is_quota_reached: bool = False
    """A transaction that changes one of them is refused: another identity protects it."""
    never_registers: set[int] = field(default_factory=set)
    """A broker that reaches RUNNING and serves, and never registers with the quorum (as with a wrong IBP); or a controller,
    whose registration nobody has answered (KAFKA-20247)."""
    is_dual_write_stuck: bool = False
    """The offset in `/migration` stands still; gauge and lag look well (proven-facts, section 4). Ends with a failover."""
    failover_does_not_cure: bool = False
    """As with a CLIENT_METRICS config: the next leader's dual write is as stuck as the last one's."""
    remembered_topics: set[str] = field(default_factory=set)
    """Brokers serve them, and somebody has deleted their znodes."""
    failing_canaries: set[str] = field(default_factory=set)
    """What clients cannot do: `topic`, `messages`, `config`, `acl`, `scram`, `removal`."""
    forbidden_canaries: set[str] = field(default_factory=set)
    """The same, because our principal may not (`Permanent`)."""
    poisoned_copy: bool = False
    """Each active controller claims, and dies of a znode that it cannot read."""
    late_claims: int = 0
    """A claim of KRaft's was under way: this often, where nobody claims any more, it comes first (proven-facts, section 5)."""
