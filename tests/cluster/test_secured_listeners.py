"""PF29 on real brokers that speak SASL_SSL: a cluster in order is clean, and what would keep nodes out is named.

Files are edited and brokers go on from memory: a look reads the files. All poisons are in one look, each on a node of its own.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from activities.observing.observe import observe_for
from activities.zk_to_kraft.surveying import with_survey
from domain.checks.acceptance import blockers_in
from domain.decisions import Finding
from domain.observed.observation import Observation
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preflight import preflight
from domain.zk_to_kraft.steps import KIND
from playground.cluster import PlaygroundCluster
from playground.field import Field
from playground.secured import Authority, Security

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

POLICY = ZkToKraftPolicy()
STRANGER = Authority("stranger")


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    directory = tmp_path_factory.mktemp("secured")
    with PlaygroundCluster(directory / "cluster", is_secured=True, announce=print) as cluster:
        yield Field(cluster, directory / "artefacts")


async def look(field: Field) -> Observation:
    begun, deadline = time.monotonic(), time.monotonic() + 60
    while True:
        seen = await with_survey(await observe_for(KIND, field.record, field.ports, POLICY), field.record, POLICY, field.ports)
        if not seen.unanswered:
            print(f"a look took {time.monotonic() - begun:.1f} s")
            return seen
        assert time.monotonic() < deadline, seen.unanswered


async def findings(field: Field) -> tuple[Finding, ...]:
    return blockers_in(preflight(await look(field), field.cluster.spec, POLICY), POLICY)


@contextmanager
def written(path: Path, content: bytes) -> Iterator[None]:
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


@contextmanager
def edited(path: str | None, *changes: tuple[str, str]) -> Iterator[None]:
    assert path is not None
    text = Path(path).read_text(encoding="latin-1")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    with written(Path(path), text.encode("latin-1")):
        yield


NAMED = (
    ("CONTROLLER, controller-3001", "password was incorrect"),
    ("from controller-3001", "Failed to load SSL keystore"),
    ("certificate of controller-3002", "truststores of broker-2, broker-3, controller-3001"),
    ("certificate of controller-3003", "valid until"),
    ("certificate of controller-3003", "it is for node, 127.0.0.2"),
    ("certificate of controller-3003", "truststores of broker-1 contain no authority that signed it"),
    ("broker-2 at 127.0.0.1", "Invalid username or password"),
    ("login of broker-3 to CONTROLLER", "user platform is unknown to controller-3003"),
    ("login of broker-2 to CONTROLLER", "its password differs from the one at controller-3001, controller-3002"),
)
"""Parts of a finding's object and of what is observed."""


async def test_what_would_keep_nodes_out_is_named_and_a_cluster_in_order_is_clean(field: Field) -> None:
    assert await findings(field) == ()
    with poisoned(field):
        found = await findings(field)
    told = [(f.code, f.object, f.observed) for f in found]
    print(*told, sep="\n")
    assert not any(f.is_unverifiable for f in found)
    for where, what in NAMED:
        assert any(code == "PF29" and where in object_ and what in observed for code, object_, observed in told), (where, what)
    assert await findings(field) == ()


@contextmanager
def poisoned(field: Field) -> Iterator[None]:
    spec, security = field.cluster.spec, field.cluster.security
    assert security is not None
    strange = Path(security.directory / "stranger.p12")
    strange.write_bytes(STRANGER.truststore(security.store_password))
    first, _, third = (controller.base_properties for controller in spec.controllers)
    with ExitStack() as poisons:
        for poison in (
            edited(first, (f"ssl.keystore.password={security.store_password}", "ssl.keystore.password=another")),
            written(security.keystore("controller-3002"), STRANGER.keystore(security.store_password)),
            written(security.keystore("controller-3003"), _expired_and_of_another_host(security)),
            edited(third, (' password="', ' password="x'), (" user_platform=", " user_other=")),
            edited(spec.brokers[0].properties_file, (str(security.truststore), str(strange))),
            edited(spec.brokers[1].properties_file, *_another_password(security, "controller")),
        ):
            poisons.enter_context(poison)
        yield


def _expired_and_of_another_host(security: Security) -> bytes:
    return security.authority.keystore(security.store_password, "127.0.0.2", -timedelta(hours=1))


def _another_password(security: Security, listener: str) -> tuple[tuple[str, str], ...]:
    line = next(line for line in security.properties("any").splitlines() if line.startswith(f"listener.name.{listener}."))
    return ((line, line.replace(' password="', ' password="x')),)
