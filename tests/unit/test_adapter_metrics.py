"""Metrics adapters against an HTTP server of ours: good pages, and every way in which an answer can be bad."""

import asyncio
import json
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

from activities.adapters.metrics.by_endpoint import EndpointMetrics
from activities.adapters.metrics.gauges import GAUGES
from domain.cluster import JolokiaEndpoint, MetricsEndpoint, PrometheusEndpoint
from domain.errors import Obstacle, Transient
from domain.observed.observation import MigrationGauge, NodeMetrics
from playground.secured import Authority

Serve = Callable[..., Awaitable[str]]

MBEANS: dict[str, Any] = {
    "kafka.controller:type=KafkaController,name=ZkMigrationState": 1,
    "kafka.controller:type=KafkaController,name=ActiveControllerCount": 1,
    "kafka.controller:type=KafkaController,name=MigratingZkBrokerCount": 0,
    "kafka.controller:type=KafkaController,name=ZkWriteBehindLag": 20,
    "kafka.server:type=SessionExpireListener,name=SessionState": "CONNECTED",
    "kafka.server:type=raft-metrics": {
        "current-leader": 3001.0,
        "current-epoch": 4.0,
        "log-end-offset": 1e6,
        "high-watermark": -1,
    },
    "kafka.server:type=app-info,*": {
        "kafka.server:type=app-info": {"version": "3.9.2"},
        "kafka.server:type=app-info,id=3001": {"Version": "3.9.2"},
    },
}

MALFORMED_GAUGES: tuple[object, ...] = (5, -2, "4", 1.5, True, None, [])

EXPECTED = NodeMetrics(
    migration_gauge=MigrationGauge.MIGRATION,
    active_controller_count=1,
    migrating_broker_count=0,
    write_behind_lag=20,
    zookeeper_session="CONNECTED",
    raft_leader=3001,
    raft_epoch=4,
    raft_log_end=1_000_000,
    raft_high_watermark=-1,
    kafka_version="3.9.2",
    node_id=3001,
)

DEFAULT_RULES = """\
# HELP kafka_controller_KafkaController_Value Attribute exposed for management {with="braces"}
# TYPE kafka_controller_KafkaController_Value untyped
kafka_controller_KafkaController_Value{name="ZkMigrationState"} 1.0
kafka_controller_KafkaController_Value{name="ActiveControllerCount",} 1.0
kafka_controller_KafkaController_Value{name="MigratingZkBrokerCount"} 0.0
kafka_controller_KafkaController_Value{name="ZkWriteBehindLag"} 20.0 1700000000000
kafka_controller_KafkaController_Max{name="ZkWriteBehindLag"} 99.0
kafka_server_app_info_StartTimeMs{id="3001",} 1.7E12
kafka_server_raft_metrics_current_leader 3001.0
kafka_server_raft_metrics_current_epoch 4.0
kafka_server_raft_metrics_log_end_offset 1.0E6
kafka_server_raft_metrics_high_watermark -1.0
kafka_server_raft_metrics_election_latency_avg NaN
kafka_cluster_Partition_Value{name="UnderReplicated",partition="0",topic="a \\"b\\" {c}"} 1.0
jmx_scrape_error 0.0
"""

COMMON_RULES = """\
kafka_controller_kafkacontroller_zkmigrationstate 1.0
kafka_controller_kafkacontroller_activecontrollercount_value 1.0
kafka_controller_kafkacontroller_migratingzkbrokercount 0.0
kafka_controller_kafkacontroller_zkwritebehindlag 20.0
kafka_server_app_info_starttimems{id="3001"} 1.7E12
kafka_server_raftmetrics_current_leader 3001.0
kafka_server_raftmetrics_current_epoch 4.0
kafka_server_raftmetrics_log_end_offset 1000000
kafka_server_raftmetrics_high_watermark -1
jmx_scrape_error 0.0
"""


async def obstacle_of(endpoint: MetricsEndpoint, seconds: float = 5.0) -> tuple[Obstacle | None, str]:
    with pytest.raises(Transient) as raised:
        await read(endpoint, seconds)
    return raised.value.obstacle, str(raised.value)


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts a server that gives one answer (text, or a function of the request's body); its URL."""
    servers: list[asyncio.Server] = []

    async def start(answer: str | Callable[[bytes], str], status: int = 200) -> str:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = next((int(h.partition(":")[2]) for h in head.splitlines() if h.startswith("content-length:")), 0)
            body = await reader.readexactly(length)
            text = (answer if isinstance(answer, str) else answer(body)).encode()
            writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(text)) + text)
            await writer.drain()
            writer.close()

        servers.append(await asyncio.start_server(handle, "127.0.0.1", 0))
        return f"http://127.0.0.1:{servers[-1].sockets[0].getsockname()[1]}/path"

    yield start
    for server in servers:
        server.close()
        await server.wait_closed()


def jolokia(mbeans: dict[str, Any]) -> Callable[[bytes], str]:
    """Answers a bulk read as the agent does: a status for each element, 404 for what is absent."""

    def answer(body: bytes) -> str:
        elements = [
            {"status": 200, "value": mbeans[asked["mbean"]], "request": asked}
            if asked["mbean"] in mbeans
            else {"status": 404, "error_type": "javax.management.InstanceNotFoundException", "request": asked}
            for asked in json.loads(body)
        ]
        return json.dumps(elements)

    return answer


async def read(endpoint: MetricsEndpoint, seconds: float = 5.0) -> NodeMetrics:
    return await EndpointMetrics(seconds).read(endpoint)


async def test_jolokia_gives_what_is_there_and_none_for_the_rest(serve: Serve) -> None:
    assert await read(JolokiaEndpoint(url=await serve(jolokia(MBEANS)))) == EXPECTED


async def test_jolokia_without_any_mbean_of_kafka(serve: Serve) -> None:
    """A JVM that has just begun: it answers, and has nothing yet."""
    assert await read(JolokiaEndpoint(url=await serve(jolokia({})))) == NodeMetrics()


@pytest.mark.parametrize("page", [DEFAULT_RULES, COMMON_RULES])
async def test_prometheus_gives_the_numbers_and_no_strings(serve: Serve, page: str) -> None:
    strings = {"zookeeper_session": None, "kafka_version": None}
    assert await read(PrometheusEndpoint(url=await serve(page))) == EXPECTED.model_copy(update=strings)


@pytest.mark.parametrize(
    "change",
    [
        {"kafka.server:type=raft-metrics": 7},
        {"kafka.server:type=raft-metrics": {"current-leader": "NaN"}},
        {"kafka.server:type=app-info,*": "3.9.2"},
        {"kafka.server:type=app-info,*": {"a": {"version": "3.9.2"}, "b": {"Version": "3.9.1"}}},
        {"kafka.server:type=raft-metrics": {"current-leader": None}},
        *({GAUGES["migration_gauge"]: value} for value in MALFORMED_GAUGES),
    ],
)
async def test_malformed_values_are_transient_never_absent(serve: Serve, change: dict[str, Any]) -> None:
    with pytest.raises(Transient):
        await read(JolokiaEndpoint(url=await serve(jolokia(MBEANS | change))))


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "<html>",
        "{}",
        "[]",
        json.dumps([{"status": 200, "value": 1}]),
        json.dumps([{"status": 500}] * 11),
        json.dumps([{"status": 403}] * 11),
        json.dumps([{"status": 200}] * 11),
        json.dumps([3] * 11),
    ],
)
async def test_malformed_answers_of_jolokia_are_transient(serve: Serve, answer: str) -> None:
    with pytest.raises(Transient):
        await read(JolokiaEndpoint(url=await serve(answer)))


@pytest.mark.parametrize(
    "page",
    [
        "",
        "<html>no metrics here</html>",
        "up 1\n",
        DEFAULT_RULES.replace("jmx_scrape_error 0.0", "jmx_scrape_error 1.0"),
        DEFAULT_RULES.replace('ZkMigrationState"} 1.0', 'ZkMigrationState"} NaN'),
        DEFAULT_RULES.replace('ZkMigrationState"} 1.0', 'ZkMigrationState"} one'),
        DEFAULT_RULES + 'kafka_controller_KafkaController_Value{name="ZkMigrationState"} 2.0\n',
        DEFAULT_RULES + "half a li",
        DEFAULT_RULES + "half_a_line",
        DEFAULT_RULES + 'a{b="c"}1\n',
        DEFAULT_RULES + 'a{b="c"} 1}\n',
        DEFAULT_RULES + '{b="c"} 1\n',
        DEFAULT_RULES + " a 1\n",
    ],
)
async def test_malformed_pages_of_the_exporter_are_transient(serve: Serve, page: str) -> None:
    with pytest.raises(Transient):
        await read(PrometheusEndpoint(url=await serve(page)))


@pytest.mark.parametrize("kind", [JolokiaEndpoint, PrometheusEndpoint])
async def test_no_answer_is_transient(serve: Serve, kind: type[JolokiaEndpoint] | type[PrometheusEndpoint]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for url in (await serve("[]", status=500), f"http://127.0.0.1:{silent.getsockname()[1]}/", "http://127.0.0.1:1/closed"):
            with pytest.raises(Transient):
                await read(kind(url=url), seconds=0.3)


async def test_what_a_page_says_of_itself_is_told(serve: Serve) -> None:
    page = "<html><style>body {a: b}</style><body>\n<h1>JMXCollector  waiting for startDelaySeconds</h1></body>" + "x" * 5000
    with pytest.raises(Transient, match=r"status 500, expected 200: JMXCollector waiting for startDelaySeconds x+$") as raised:
        await read(PrometheusEndpoint(url=await serve(page, status=500)))
    assert len(str(raised.value)) < 300


async def test_of_a_page_that_refuses_no_secret_and_nothing_for_a_terminal_is_told(serve: Serve) -> None:
    page = "no \x1b[2J\u202egate: password=hunter2 Authorization: Bearer abc.def <script>steal()"
    with pytest.raises(Transient, match="status 500") as raised:
        await read(PrometheusEndpoint(url=await serve(page, status=500)))
    assert not [bad for bad in ("hunter2", "abc.def", "steal", "\x1b", "\u202e") if bad in str(raised.value)]


@pytest.mark.parametrize(("host", "why"), [("127.0.0.1", "refused"), ("nobody.invalid", "not known|resolution")])
async def test_why_there_is_no_answer_is_told_in_the_systems_words(host: str, why: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(Transient, match=why):
        await EndpointMetrics(5).read(JolokiaEndpoint(url=f"http://{host}:{port}/jolokia"))


@pytest.mark.parametrize(
    ("status", "obstacle"),
    [(401, Obstacle.FORBIDDEN), (403, Obstacle.FORBIDDEN), (404, Obstacle.ANOTHERS), (502, Obstacle.ANOTHERS)],
)
async def test_who_refuses_us_and_who_is_somebody_else_are_told_apart(serve: Serve, status: int, obstacle: Obstacle) -> None:
    found, _ = await obstacle_of(PrometheusEndpoint(url=await serve("", status=status)))
    assert found is obstacle


@pytest.mark.parametrize(
    ("text", "obstacle"),
    [(json.dumps([{"status": 403}] * 12), Obstacle.FORBIDDEN), ("<html>", Obstacle.ANOTHERS), ("{}", Obstacle.ANOTHERS)],
)
async def test_what_jolokia_may_not_show_and_what_is_not_jolokia(serve: Serve, text: str, obstacle: Obstacle) -> None:
    found, _ = await obstacle_of(JolokiaEndpoint(url=await serve(text)))
    assert found is obstacle


async def test_who_takes_the_connection_and_says_nothing_is_late() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/metrics"
        found, told = await obstacle_of(PrometheusEndpoint(url=url), seconds=0.3)
    assert (found, "no answer in 0.3 s" in told) == (Obstacle.LATE, True)


class LateAgent:
    """Gives its page when it may."""

    def __init__(self, page: str) -> None:
        self._page = page.encode()
        self.asked, self.may_answer = 0, asyncio.Event()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[PrometheusEndpoint]:
        async with await asyncio.start_server(self._answer, "127.0.0.1", 0) as server:
            yield PrometheusEndpoint(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/metrics")

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        await self.may_answer.wait()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(self._page) + self._page)
        await writer.drain()
        await reader.read()
        writer.close()


async def test_of_a_page_that_does_not_come_in_time_it_is_told_what_it_is_full_of_and_nobody_asks_for_another() -> None:
    """An application makes a client id for each connection: the page grows until it does not come in time. An agent would go on
    with each that nobody waits for any more."""
    lines = [f'kafka_server_Fetch_byte_rate{{client_id="lambda-{number:06}\x1b",}} 0.0' for number in range(12_000)]
    page = "\n".join([DEFAULT_RULES.rstrip(), *lines]) + "\n"
    late = LateAgent(page)
    told: list[str] = []
    async with late.serving() as endpoint:
        metrics = EndpointMetrics(seconds=0.5)

        async def is_late() -> bool:
            try:
                await metrics.read(endpoint)
            except Transient as error:
                told.append(f"{error.obstacle}: {error}")
                await asyncio.sleep(0.05)
                return True
            return False

        assert await is_late()
        assert await is_late()
        assert ("late: " in told[0], "no answer yet to a request" in told[1], late.asked) == (True, True, 1)
        late.may_answer.set()
        async with asyncio.timeout(60):
            while await is_late():
                pass
            late.may_answer.clear()
            while not await is_late():
                pass
        late.may_answer.set()
    assert re.search(r"0\.\d MB, 120\d\d lines, 9\d % of them with client_id, of which there are most \(lambda-0\d+", told[-1])
    assert "\x1b" not in told[-1]


async def test_who_was_late_is_asked_anew_as_soon_as_it_has_answered() -> None:
    """A look that follows at once is answered, and with what is so by then."""
    late = LateAgent(DEFAULT_RULES)
    async with late.serving() as endpoint:
        metrics = EndpointMetrics(seconds=3)
        with pytest.raises(Transient):
            await metrics.read(endpoint)
        asyncio.get_running_loop().call_later(0.1, late.may_answer.set)
        found = await metrics.read(endpoint)
    assert (found.migration_gauge, late.asked) == (EXPECTED.migration_gauge, 2)


async def test_nobody_there_is_no_obstacle_of_a_kind() -> None:
    found, told = await obstacle_of(PrometheusEndpoint(url="http://127.0.0.1:1/metrics"))
    assert (found, "Connection refused" in told) == (None, True)


async def test_a_certificate_that_is_not_trusted_is_told_as_that(tmp_path: Path) -> None:
    key, own, _ = pkcs12.load_key_and_certificates(Authority("one").keystore("s3cret"), b"s3cret")
    assert isinstance(key, EllipticCurvePrivateKey)
    assert own is not None
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "node.pem").write_bytes(secret + own.public_bytes(Encoding.PEM))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "node.pem")
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=tls)
    async with server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/metrics"
        found, told = await obstacle_of(PrometheusEndpoint(url=url))
    assert (found, "unable to get local issuer certificate" in told) == (Obstacle.TLS, True)


async def test_https_at_an_agent_that_speaks_http_is_told_as_that() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/metrics"
        found, told = await obstacle_of(PrometheusEndpoint(url=url))
    assert (found, "Operation not permitted" in told) == (Obstacle.TLS, False)


async def test_a_name_that_is_not_resolved_is_told_as_that() -> None:
    found, told = await obstacle_of(PrometheusEndpoint(url="http://nobody.invalid:7071/metrics"))
    assert (found, "the name nobody.invalid cannot be resolved on the machine of" in told) == (Obstacle.UNRESOLVED, True)


async def test_a_password_in_an_address_is_not_told(serve: Serve) -> None:
    url = (await serve("", status=401)).replace("//", "//me:hunter2@")
    for endpoint in (PrometheusEndpoint(url=url), JolokiaEndpoint(url=url)):
        _, told = await obstacle_of(endpoint)
        assert "hunter2" not in told
        assert "http://127.0.0.1:" in told
