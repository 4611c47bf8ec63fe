"""Sessions on a Spark Connect server. Everything here blocks, and grpc has threads of its own: call it from a thread.

A session has an id that is known before it is opened. So whoever comes after an attempt that died can end what that one has
left running in Spark, and make certain that nothing of it starts any more: a session that was released is closed for good, also
to a request that was still under way.

Every client is closed, whatever happens: one that is not asks its server once more when the interpreter exits, and waits ten
minutes for a server that is dead by then.
"""

import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import grpc
from pyspark.errors import AnalysisException, PySparkException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql.connect.client import DefaultChannelBuilder, SparkConnectClient
from pyspark.sql.connect.client.core import RpcDeadlines
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession

import domain
import spark
from domain.errors import KeeperlessError, Permanent, Transient
from spark.session.endpoint import Endpoint

USER = "keeperless"
"""The same in every attempt: a session is known by user and id."""

MAX_RETRIES = 6
MAX_BACKOFF_MILLISECONDS = 3000
"""Together about ten seconds for a server that is not to be reached. Spark's own default takes ten minutes to say so."""
INTERRUPT_SECONDS = 10.0

CLOSED = "INVALID_HANDLE.SESSION_CLOSED"
BETWEEN_TWO_STATES = (
    "SPARK_CONNECT_ILLEGAL_STATE.STATE_CONSISTENCY_EXECUTION_STATE_TRANSITION_INVALID_OPERATION_STATUS_MISMATCH"
)
REFUSED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)

PACKAGES = (domain, spark)


def new_session_id() -> str:
    return str(uuid4())


@contextmanager
def session(endpoint: Endpoint, session_id: str, tag: str = "") -> Iterator[SparkSession]:
    """A session under this id, released at the end. What goes wrong in it is raised in words of `domain.errors`.

    `tag`: operations of this thread carry it, for whoever looks at Spark.
    """
    with translated(endpoint):
        spark = opened(endpoint, session_id)
        try:
            with tagged(spark, tag):
                yield spark
        finally:
            spark.stop()


def opened(endpoint: Endpoint, session_id: str) -> SparkSession:
    """A session that whoever has it has to stop. Raises Spark's own errors."""
    spark = SparkSession.builder.channelBuilder(_channel(endpoint, session_id)).create()
    try:
        spark.client.set_retry_policies([_patience()])
        if not endpoint.has_our_code:
            ship_code(spark)
    except BaseException:
        spark.stop()
        raise
    return spark


@contextmanager
def tagged(spark: SparkSession, tag: str) -> Iterator[None]:
    """Operations of this thread carry the tag, if there is one."""
    if not tag:
        yield
        return
    spark.addTag(tag)
    try:
        yield
    finally:
        spark.removeTag(tag)


def interrupt_attempt(endpoint: Endpoint, session_id: str) -> None:
    """Ends all that runs in this session, and closes it: afterwards nothing of it runs, or ever will. Safe any number of times.

    To interrupt it makes the session known to the server, should the attempt not have come so far. One that the server never
    saw cannot be closed, and a request of the attempt's that is still under way would open it.
    """
    deadline = time.monotonic() + INTERRUPT_SECONDS
    with translated(endpoint), _client(endpoint, session_id, INTERRUPT_SECONDS) as client:
        client.set_retry_policies([_patience()])
        while not _is_closed_now(client):
            if time.monotonic() > deadline:
                raise Transient(f"Spark at {endpoint.url} does not close session {session_id}; its work may still run there")
            time.sleep(0.05)


def _is_closed_now(client: SparkConnectClient) -> bool:
    """Whether the session is closed by this, or was before. False: asking again says more.

    Spark 4.3 fails to close a session in the very moment in which an operation of it is about to begin: interrupted, but
    neither finished nor cancelled yet. The session is gone by then as a rule, and the next question tells.
    """
    try:
        client.interrupt_all()
        client.release_session()
    except SparkConnectGrpcException as error:
        if error.getCondition() == CLOSED:
            return True
        if error.getCondition() != BETWEEN_TWO_STATES:
            raise
        return False
    return True


def is_answering(endpoint: Endpoint, seconds: float) -> bool:
    """Asks once, for something that leaves no trace, and with the token: another's server is no answer."""
    with _client(endpoint, new_session_id(), seconds) as client:
        client.set_retry_policies([])
        try:
            client.release_session()
        except SparkConnectGrpcException:
            return False
    return True


@contextmanager
def translated(endpoint: Endpoint) -> Iterator[None]:
    """Spark's errors in words that say what to do: try again, or never again with this input."""
    try:
        yield
    except PySparkException as error:
        raise _translation(endpoint, error) from error


def _translation(endpoint: Endpoint, error: PySparkException) -> KeeperlessError:
    code = error.getGrpcStatusCode() if isinstance(error, SparkConnectGrpcException) else None
    if code in REFUSED:
        return Permanent(f"Spark at {endpoint.url} refuses us: KEEPERLESS_SPARK_TOKEN has to be the token it was started with")
    told = f"Spark at {endpoint.url}: {str(error)[:1000]}"
    return Permanent(told) if isinstance(error, AnalysisException) else Transient(told)


@contextmanager
def _client(endpoint: Endpoint, session_id: str, seconds: float) -> Iterator[SparkConnectClient]:
    """For single questions, each answered within `seconds`."""
    deadlines = RpcDeadlines(config=seconds, interrupt=seconds, release_session=seconds, fetch_error_details=seconds)
    client = SparkConnectClient(_channel(endpoint, session_id), rpc_deadlines=deadlines)
    try:
        yield client
    finally:
        client.close()


def _channel(endpoint: Endpoint, session_id: str) -> DefaultChannelBuilder:
    """Never through a proxy where the server is on this machine: proxies that are set in the environment are for the world."""
    is_here = endpoint.url.startswith("sc://localhost")
    channel = DefaultChannelBuilder(endpoint.url, [("grpc.enable_http_proxy", 0)] if is_here else None)
    channel.set("session_id", session_id)
    channel.set("user_id", USER)
    if endpoint.token:
        channel.set("token", endpoint.token)
    return channel


def _patience() -> DefaultPolicy:
    return DefaultPolicy(max_retries=MAX_RETRIES, max_backoff=MAX_BACKOFF_MILLISECONDS)


def ship_code(session: SparkSession) -> None:
    """For this session only: two versions of us can use one Spark. Its executors have the libraries of `requirements.lock`."""
    with tempfile.TemporaryDirectory(prefix="keeperless-code-") as folder:
        archive = Path(folder) / "keeperless.zip"
        write_code(archive)
        session.addArtifacts(str(archive), pyfile=True)


def write_code(archive: Path) -> None:
    """The packages as they lie here, importable from the zip."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as code:
        for package in PACKAGES:
            root = Path(str(package.__file__)).parent
            for path in sorted(root.rglob("*.py")):
                code.write(path, str(path.relative_to(root.parent)))
