"""Where a node listens, held against where it is asked: the sentence, and what to do first."""

from dataclasses import replace

import pytest

from domain.diagnosis.causes.hints import Hints
from domain.diagnosis.causes.reachability import door_of
from domain.diagnosis.machines.vital_signs import VitalSigns
from tests.unit.blocked import SOAK, SPEC, found, looked_at, silent
from tests.unit.conftest import signs_of

NAME, HOST = SPEC.node_name(2), "kafka3"


def listening_at(*addresses: str) -> Hints:
    return Hints(signs={NAME: signs_of(listens=addresses)}, numbers={HOST: ("10.77.0.3",)})


@pytest.mark.parametrize(
    ("listens", "observed", "first"),
    [
        (("10.77.0.3:29487", "0.0.0.0:9092"), "listens at 10.77.0.3:29487, 0.0.0.0:9092, and at no port 9093", "a proxy"),
        (("127.0.1.1:9093", "0.0.0.0:9092"), "listens at 127.0.1.1:9093 only", "/etc/hosts"),
        (("[::1]:9093",), "listens at [::1]:9093 only", "/etc/hosts"),
        (("10.88.0.3:9093",), "at 10.88.0.3:9093 only, and kafka3 leads to 10.77.0.3 from here", "NAT"),
        (("0.0.0.0:9093",), "does listen there by now (0.0.0.0:9093)", "another machine may have kafka3 too"),
        (("[::]:9093",), "does listen there", "another machine"),
        (("10.77.0.3:9093", "127.0.0.1:9093"), "does listen there", "A firewall may reject"),
    ],
    ids=["elsewhere", "loopback", "loopback of IPv6", "another address", "everywhere", "everywhere of IPv6", "there"],
)
def test_what_is_known_of_an_address_that_does_not_answer(listens: tuple[str, ...], observed: str, first: str) -> None:
    looked = looked_at(SOAK, hints=listening_at(*listens))
    for address in (f"{HOST}:9093", f"http://olga:tiger@{HOST}:9093/metrics"):
        door = door_of(looked, NAME, address)
        assert door is not None
        assert observed in door.observed
        assert first in door.fix
        assert "tiger" not in door.observed + door.fix


def test_addresses_are_the_same_however_they_are_written() -> None:
    door = door_of(looked_at(SOAK, hints=listening_at("[fd00::3]:9093")), NAME, "[fd00:0:0:0:0:0:0:3]:9093")
    assert door is not None
    assert "does listen there" in door.observed


@pytest.mark.parametrize("listens", ["10.77.0.3:9092", "127.0.0.1:9092"])
def test_of_a_name_that_nobody_has_looked_up_nothing_is_claimed(listens: str) -> None:
    """What is advertised need not be among the specification's names."""
    assert door_of(looked_at(SOAK, hints=listening_at(listens)), NAME, "kafka3.public.example:9092") is None


def test_an_agent_that_listens_at_loopback_is_mended_at_the_agent() -> None:
    """`listeners` says nothing of where it listens."""
    door = door_of(looked_at(SOAK, hints=listening_at("127.0.0.1:9404")), NAME, f"http://{HOST}:9404/", is_agent=True)
    assert door is not None
    assert "-javaagent" in door.fix
    assert "restart" not in door.fix


def test_a_broker_whose_address_turns_everybody_away_is_told_with_where_it_listens() -> None:
    hints = replace(listening_at("127.0.0.1:29092"), unheard={2: ("127.0.0.1:9092",)})
    (entry,) = [one for one in found(SOAK, hints=hints) if one.object == NAME]
    assert "no connection there is accepted within two seconds. Its process listens at 127.0.0.1:29092" in entry.observed
    assert entry.fix.startswith("Check what answered there before")


@pytest.mark.parametrize(
    "signs", [{}, {NAME: signs_of(listens=None)}, {NAME: signs_of(listens=())}], ids=["unseen", "untold", "none"]
)
def test_of_whom_nobody_knows_where_it_listens_nothing_is_told(signs: dict[str, VitalSigns]) -> None:
    assert door_of(looked_at(SOAK, hints=Hints(signs=signs)), NAME, f"{HOST}:9093") is None


def test_a_node_whose_endpoint_answers_nobody_is_told_with_where_it_listens() -> None:
    """A proxy before its agent has ended: there is nothing to mend in the node."""
    (entry,) = [one for one in found(silent(SOAK, 2), hints=listening_at("127.0.0.1:29487")) if one.object == NAME]
    assert "Its process listens at 127.0.0.1:29487, and at no port" in entry.observed
    assert entry.fix.startswith("Check what answered there before: it may have been a proxy")


def test_a_controller_that_listens_at_loopback_only_is_told_with_that() -> None:
    controller = SPEC.controllers[0]
    name, address = SPEC.node_name(controller.id), f"{controller.host}:{controller.port}"
    hints = Hints(signs={name: signs_of(listens=(f"127.0.1.1:{controller.port}",))}, shut=frozenset({address}))
    apart = replace(hints, numbers={controller.host: ("10.77.0.3",)})
    (entry,) = [one for one in found(SOAK, hints=apart) if one.code == "controllers-not-ready"]
    assert f"Its process listens at 127.0.1.1:{controller.port} only" in entry.observed
    assert entry.fix.startswith("A name in `listeners`")
    assert "Restart no other controller before" in entry.fix
