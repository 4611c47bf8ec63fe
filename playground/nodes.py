"""Nodes to migrate in a container of their own, with the two workers that belong on the machine of the nodes.

    python -m playground.nodes prepare     when the image is built: the jars, and a class archive
    python -m playground.nodes run         in the container, until SIGTERM: the cluster and the workers

The volume at `DIRECTORY` is the cluster. A container that was killed starts again what is there, in the mode that its files
describe, so that a migration can continue. `cluster.json` there is what `PUT /clusters/demo` takes, `wanted.json` what is
`wanted` in `POST /plans` and `POST /migrations`.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from domain.cluster import ClusterSpec
from playground import processes
from playground.brokers import node_launch
from playground.cluster import PlaygroundCluster, prepared_runtime, stop_everything_in
from playground.ensemble import Ensemble, found_servers
from playground.wanted import WANTED_FILE, read_parts

DIRECTORY = Path("/var/lib/kafka")
NAME = "demo"
WORKERS = ("keeperless-activities", "keeperless-checks")
PAUSE_SECONDS = 2.0
"""Before a worker that has ended is started again: its end must not take the nodes with it."""
STOP_SECONDS = 30.0
SESSIONS_END_WITHIN = 60.0
"""`zookeeper.session.timeout.ms` is 6000 in this cluster; it counts from the start of ZooKeeper."""


def start(directory: Path) -> None:
    """Everything that was there before; a new cluster where there was none."""
    if (directory / WANTED_FILE).exists():
        start_again(directory, read_parts(directory))
    else:
        PlaygroundCluster(directory, name=NAME, host=socket.gethostname(), announce=say).start()


def start_again(directory: Path, spec: ClusterSpec) -> None:
    """Return when ZooKeeper has its quorum and the other nodes are started."""
    Ensemble(found_servers(directory), prepared_runtime(directory, say)).start()
    await_the_end_of_old_sessions(spec.ensemble.connect)
    for node_id in startable(spec):
        processes.start(node_launch(spec.node(node_id), spec.node_name(node_id)))
    say("Started what was there before")


def await_the_end_of_old_sessions(connect: str) -> None:
    """A broker that was killed stays registered until its ZooKeeper session times out. One that starts before that gives up."""
    client = KazooClient(hosts=connect)
    client.start()
    try:
        processes.wait_until(lambda: not is_any_registered(client), "the end of the brokers' old sessions", SESSIONS_END_WITHIN)
    finally:
        client.stop()
        client.close()


def is_any_registered(client: KazooClient) -> bool:
    try:
        return bool(client.get_children("/brokers/ids"))
    except NoNodeError:
        return False


def startable(spec: ClusterSpec) -> Iterator[int]:
    """Brokers, and controllers that are formatted: others are not created yet, or fenced by a rollback."""
    yield from (broker.id for broker in spec.brokers)
    for controller in spec.controllers:
        if any(Path(path, "meta.properties").exists() for path in controller.log_dirs):
            yield controller.id


def keep_running(program: str, told: threading.Event) -> None:
    """Start the program whenever it has ended, until `told`; then let it end."""
    while not told.is_set():
        process = subprocess.Popen([program])
        while process.poll() is None and not told.wait(0.2):
            pass
        if told.is_set():
            process.terminate()
        say(f"{program} has ended with code {process.wait()}")
        told.wait(PAUSE_SECONDS)


def run(directory: Path) -> None:
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    # In a process of its own: what it starts belongs to the container's init then, which buries it.
    subprocess.run([sys.executable, "-m", "playground.nodes", "start"], check=True)
    with ThreadPoolExecutor(len(WORKERS)) as threads:
        list(threads.map(keep_running, WORKERS, repeat(told)))
    stop_everything_in(directory, STOP_SECONDS)


def prepare() -> None:
    with tempfile.TemporaryDirectory() as directory:
        prepared_runtime(Path(directory), say)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    directory = Path(os.environ.get("KEEPERLESS_NODES", DIRECTORY))
    match sys.argv[1:]:
        case ["prepare"]:
            prepare()
        case ["start"]:
            start(directory)
        case ["run"]:
            run(directory)
        case _:
            sys.exit("usage: python -m playground.nodes prepare | start | run")


if __name__ == "__main__":
    main()
