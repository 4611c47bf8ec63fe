"""Three real ZooKeeper servers on 127.0.0.1, one quorum."""

import socket
from dataclasses import dataclass
from pathlib import Path

from domain.cluster import ZooKeeperMemberSpec
from domain.configuration.properties import parse
from playground import processes
from playground.jvm import Runtime
from playground.ports import LOOPBACK, PortLease
from playground.processes import Launch
from playground.progress import wait_while_working

SERVER_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
HEAP_MIB = 96


@dataclass(frozen=True)
class ZooKeeperServer:
    """One server: where it listens, where it keeps its data."""

    id: int
    client_port: int
    quorum_port: int
    election_port: int
    directory: Path
    host: str = LOOPBACK

    @property
    def name(self) -> str:
        return f"zookeeper-{self.id}"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def address(self) -> str:
        return f"{self.host}:{self.client_port}"


@dataclass(frozen=True)
class Ensemble:
    """The servers of one quorum, and how to run them."""

    servers: tuple[ZooKeeperServer, ...]
    runtime: Runtime

    def connect(self, chroot: str) -> str:
        """What clients have in `zookeeper.connect`."""
        return ",".join(server.address for server in self.servers) + chroot

    @property
    def members(self) -> tuple[ZooKeeperMemberSpec, ...]:
        """As an operator would name them."""
        return tuple(
            ZooKeeperMemberSpec(
                host=server.host,
                port=server.client_port,
                data_dir=str(server.data),
                output_file=str(self.launch(server).output_file),
            )
            for server in self.servers
        )

    def launch(self, server: ZooKeeperServer) -> Launch:
        configuration = server.directory / "zoo.cfg"
        java = self.runtime.java(HEAP_MIB, "-Dzookeeper.admin.enableServer=false", "-Dzookeeper.jmx.log4j.disable=true")
        return Launch(
            name=server.name,
            command=(*java, SERVER_CLASS, str(configuration)),
            pid_file=server.directory / "zookeeper.pid",
            output_file=server.directory / "zookeeper.log",
            environment=processes.plain_environment(self.runtime.java_home),
            mark=str(configuration),
        )

    def start(self) -> float:
        """Starts all servers; returns when every one of them leads or follows, with the seconds it took."""
        for server in self.servers:
            write_configuration(server, self.servers)
            processes.start(self.launch(server))
        return wait_while_working(
            lambda: all(mode_of(server) in {"leader", "follower"} for server in self.servers),
            f"{len(self.servers)} ZooKeeper servers to form a quorum",
            [self.launch(server) for server in self.servers],
        )


def plan_ensemble(directory: Path, ports: PortLease, runtime: Runtime, size: int = 3, host: str = LOOPBACK) -> Ensemble:
    servers = tuple(
        ZooKeeperServer(id_, ports.take(), ports.take(), ports.take(), directory / f"zookeeper-{id_}", host)
        for id_ in range(1, size + 1)
    )
    return Ensemble(servers, runtime)


def found_servers(directory: Path) -> tuple[ZooKeeperServer, ...]:
    """Those that were planned and started there before, from their own configuration."""
    return tuple(_found(configuration) for configuration in sorted(directory.glob("zookeeper-*/zoo.cfg")))


def _found(configuration: Path) -> ZooKeeperServer:
    settings = parse(configuration.read_text(encoding="utf-8"))
    id_ = int(configuration.parent.name.rpartition("-")[2])
    host, quorum, election = settings[f"server.{id_}"].split(":")
    return ZooKeeperServer(id_, int(settings["clientPort"]), int(quorum), int(election), configuration.parent, host)


def write_configuration(server: ZooKeeperServer, all_servers: tuple[ZooKeeperServer, ...]) -> None:
    data = server.data
    data.mkdir(parents=True, exist_ok=True)
    (data / "myid").write_text(f"{server.id}\n", encoding="ascii")
    members = "\n".join(f"server.{s.id}={s.host}:{s.quorum_port}:{s.election_port}" for s in all_servers)
    text = f"""\
# A session of 6 s, as brokers ask for, must lie between 2 and 20 ticks.
tickTime=1000
initLimit=20
syncLimit=10
dataDir={data}
clientPort={server.client_port}
clientPortAddress={server.host}
maxClientCnxns=0
4lw.commands.whitelist=*
admin.enableServer=false
enforceQuota=true
autopurge.snapRetainCount=3
autopurge.purgeInterval=1

{members}
"""
    (server.directory / "zoo.cfg").write_text(text, encoding="utf-8")


def mode_of(server: ZooKeeperServer) -> str | None:
    """`leader`, `follower`, … as the server itself says; None while it does not serve."""
    for line in four_letter_word(server, "srvr").splitlines():
        if line.startswith("Mode: "):
            return line.removeprefix("Mode: ").strip()
    return None


def four_letter_word(server: ZooKeeperServer, word: str) -> str:
    """The answer to ZooKeeper's plain-text command; empty when nobody answers."""
    try:
        with socket.create_connection((server.host, server.client_port), timeout=2) as connection:
            connection.sendall(word.encode("ascii"))
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode("utf-8")
    except OSError:
        return ""
