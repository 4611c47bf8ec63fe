"""A Spark Connect server as a process of its own, that ends with whoever started it.

Spark's own launcher is not used: it asks for a module that the packaged JRE lacks (`jdk.incubator.vector`), and starts one more
JVM only to write a command line. What it would write is below, as in `JavaModuleOptions` of Spark 4.3.

The server ends with its owner also when that is killed with SIGKILL: the shell that becomes the JVM leaves a child that reads
from a pipe of the owner's. When the owner is gone the pipe ends, and the child kills their common process group. It holds on
any thread and in any sandbox, which `prctl(PR_SET_PDEATHSIG)` does not: that follows the thread that forked.
"""

import contextlib
import importlib.util
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO

from domain.errors import Permanent, Transient
from spark.session.endpoint import Endpoint

LOOPBACK = "127.0.0.1"
MAIN_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105
START_SECONDS = 120.0
STOP_SECONDS = 10.0
STARTED = re.compile(rb"Spark Connect server started at: \S*:(\d+)")

OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs"),
    *("sun.security.action", "sun.util.calendar"),
)
JVM_OPTIONS = (
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+ExitOnOutOfMemoryError",  # a server without memory answers nobody: better gone, and started again
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Djava.net.preferIPv4Stack=true",
)

UNTIL_THE_OWNER_IS_GONE = 'exec 3<&0; (read -r gone <&3; kill -KILL 0) >/dev/null 2>&1 & exec "$@" </dev/null 3<&-'

LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_OUT
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yyyy-MM-dd'T'HH:mm:ss.SSS} %p %c{1}: %m%n%ex
logger.started.name = org.apache.spark.sql.connect.service.SparkConnectServer
logger.started.level = info
"""


class Profile(StrEnum):
    """What the JVM of an embedded Spark is tuned for."""

    SMALL = "small"
    """Up to some 200,000 partitions: starts fast, takes little memory; its code is half as fast once there is a lot to do."""
    LARGE = "large"
    """Beyond: optimised code, and a collector that uses all cores."""

    @property
    def options(self) -> tuple[str, ...]:
        if self is Profile.SMALL:
            return ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss4m")
        return ("-XX:+UseParallelGC", "-Xss4m")


@dataclass(frozen=True)
class ServerPlan:
    """`directory` is private to this server: log, temporary files. `master`: `local[*]`, or that of a standalone cluster."""

    directory: Path
    java_home: Path
    master: str = "local[*]"
    driver_memory: str = "1g"
    profile: Profile = Profile.SMALL
    python: Path = Path(sys.executable)
    conf: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    @property
    def log(self) -> Path:
        return self.directory / "server.log"

    @property
    def scratch(self) -> Path:
        return self.directory / "scratch"


DAEMON = "spark.session.daemon"
"""A module by its name: it imports PySpark, which is not everywhere."""


def spark_home() -> Path:
    """Where PySpark is installed: its jars are a whole Spark."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise Permanent("PySpark is not installed here: install requirements-checks.lock (make setup-checks)")
    return Path(found.origin).parent


def class_archive() -> Path:
    """Where `spark.session.classes` puts it."""
    return spark_home().parent / "keeperless-spark.jsa"


def class_path() -> str:
    return str(spark_home() / "jars" / "*")


def command(plan: ServerPlan) -> list[str]:
    """Without the token, which nobody may read in a list of processes."""
    conf = {
        "spark.master": plan.master,
        "spark.app.name": "keeperless-checks",
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        # Its other ports are on loopback too; this keeps other users of this machine out of them.
        "spark.authenticate": "true",
        "spark.local.dir": str(plan.scratch),
        "spark.sql.warehouse.dir": str(plan.scratch / "warehouse"),
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.connect.progress.reportInterval": "500ms",
        # Spark looks every two seconds whether a Python process works for a task that was cancelled, then waits for so long.
        "spark.python.task.killTimeout": "200ms",
        # Executors elsewhere have no code of ours but what is shipped, and that comes to workers only.
        **({"spark.python.daemon.module": DAEMON} if plan.master.startswith("local") else {}),
        **plan.conf,
    }
    return [
        str(plan.java_home / "bin" / "java"),
        f"-Xmx{plan.driver_memory}",
        *plan.profile.options,
        *JVM_OPTIONS,
        *((f"-XX:SharedArchiveFile={class_archive()}", "-Xlog:cds=off") if class_archive().exists() else ()),
        *plan.options,
        f"-Djava.io.tmpdir={plan.scratch}",
        f"-Dlog4j2.configurationFile={plan.directory / 'log4j2.properties'}",
        *(f"-D{name}={value}" for name, value in conf.items()),
        *("-cp", class_path(), MAIN_CLASS),
    ]


def environment(plan: ServerPlan, token: str, ours: Mapping[str, str]) -> dict[str, str]:
    """Ours, as `env:…` secrets are read in Spark's Python processes too; but nothing that is meant for another Spark."""
    kept = {name: value for name, value in ours.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
    root = Path(__file__).parent.parent.parent
    return kept | {
        TOKEN_VARIABLE: token,
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": LOOPBACK,
        "PYSPARK_PYTHON": str(plan.python),
        "PYTHONPATH": str(root),
    }


class ConnectServer:
    """A server that was started here. `log` is open and locked, and stays so while any process of the server lives."""

    def __init__(self, plan: ServerPlan, log: IO[bytes]) -> None:
        self._plan = plan
        self._token = secrets.token_urlsafe(32)
        shutil.rmtree(plan.scratch, ignore_errors=True)
        plan.scratch.mkdir(parents=True)
        (plan.directory / "log4j2.properties").write_text(LOGGING, encoding="utf-8")
        log.truncate(0)
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", UNTIL_THE_OWNER_IS_GONE, "keeperless-spark", "nice", *command(plan)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=plan.scratch,
            env=environment(plan, self._token, os.environ),
            start_new_session=True,
        )

    def await_endpoint(self) -> Endpoint:
        """Blocks until it listens. Raises Transient, with the end of its log, when it does not; then it is stopped."""
        deadline = time.monotonic() + START_SECONDS
        while (found := STARTED.search(self._plan.log.read_bytes())) is None:
            if not self.is_alive() or time.monotonic() > deadline:
                self.stop()
                raise Transient(f"Spark did not start; the end of {self._plan.log}:\n{last_lines(self._plan.log)}")
            time.sleep(0.05)
        # By name: Spark's client sends a token without TLS to "localhost" and to nobody else.
        return Endpoint(f"sc://localhost:{int(found[1])}", self._token)

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        """The whole group: SIGTERM to the JVM, so that it cleans up behind itself, then SIGKILL to whatever is left."""
        if self.is_alive():
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        shutil.rmtree(self._plan.scratch, ignore_errors=True)


def last_lines(path: Path, count: int = 15) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:])
