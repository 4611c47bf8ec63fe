"""A broker that is elected, and cannot read a znode: nobody is the controller, and no log names a path."""

import pytest

from activities.ports.zookeeper import Znode
from activities.zk_to_kraft.poison import unelectable
from domain.diagnosis.causes.hints import Hints
from domain.observed.observation import Suspect
from domain.zk_to_kraft.failed_elections import unread_znode
from domain.zk_to_kraft.preflight import preflight
from playground.fakes.tree import FakeTree
from tests.unit.blocked import SAID, STARTED, found
from tests.unit.conftest import Point, observation, with_zookeeper
from tests.unit.surveys import with_tree
from tests.unit.test_preflight_survey import HEALTHY, POLICY, SPEC

OF_KAFKA = '{"features":{},"version":2,"status":1}'
FAILED = (
    f"{SAID} ERROR [Controller id=3] Error while electing or becoming controller on broker 3. Trigger controller movement "
    "immediately (kafka.controller.KafkaController)"
)
REFUSED = 'com.fasterxml.jackson.databind.JsonMappingException: Expected JSON object, received "{"'
TRACE = (
    "\tat kafka.utils.json.JsonValue$BasicJsonValue.asJsonObject(JsonValue.scala:114)",
    "\tat kafka.zk.FeatureZNode$.decode(ZkData.scala:989)",
    "\tat kafka.controller.KafkaController.enableFeatureVersioning(KafkaController.scala:440)",
)
OTHER = f"{SAID} INFO [Controller id=3] Resigned (kafka.controller.KafkaController)"


def test_the_znode_is_that_of_the_class_which_decodes_it() -> None:
    """As Kafka 3.9.2 printed it on a way back."""
    assert unread_znode((STARTED, FAILED, REFUSED, *TRACE, OTHER)) == "/feature"
    isr = tuple(line.replace("FeatureZNode$", "TopicPartitionStateZNode$") for line in TRACE)
    assert unread_znode((STARTED, FAILED, REFUSED, *isr)) == "a partition's state below /brokers/topics"
    new = tuple(line.replace("FeatureZNode$", "NewZNode$") for line in TRACE)
    assert unread_znode((STARTED, FAILED, REFUSED, *new)) == "a znode of kind New"


@pytest.mark.parametrize(
    "lines",
    [
        (STARTED, OTHER),
        (STARTED, FAILED, "java.lang.IllegalStateException: no"),
        (STARTED, OTHER, *TRACE),
        (FAILED, REFUSED, *TRACE, STARTED),
        (STARTED, FAILED, REFUSED, *TRACE, FAILED, "java.lang.IllegalStateException: no"),
    ],
    ids=["well", "of something else", "not below it", "of the process before", "not any more"],
)
def test_what_says_no_znode_is_not_told_as_one(lines: tuple[str, ...]) -> None:
    assert unread_znode(lines) is None


def test_nobody_is_the_controller_because_of_it() -> None:
    seen = with_zookeeper(observation(Point.CONTROLLERS_UP), controller=None)
    (entry,) = found(seen, hints=Hints(logs={3: (STARTED, FAILED, REFUSED, *TRACE)}))
    assert (entry.code, entry.object) == ("GF11", "/controller")
    assert "because /feature is not as Kafka writes it" in entry.observed
    assert "the log of broker-3" in entry.observed
    assert entry.fix.startswith("In zkCli.sh: delete /feature.")


@pytest.mark.parametrize(
    ("data", "is_well"),
    [
        (OF_KAFKA, True),
        ('{"features":{},"version":1,"status":0}', True),
        (f'"{OF_KAFKA}"', False),
        ('{"features":{},"version":3,"status":1}', False),
        ('{"features":{},"version":2}', False),
        ('{"version":2,"status":1}', False),
        ("", False),
    ],
)
async def test_it_is_found_before_anybody_has_to_be_elected(data: str, is_well: bool) -> None:
    suspects = await unelectable(FakeTree({"/feature": Znode(data.encode(), 0, 0)}))
    assert [suspect.what for suspect in suspects] == ([] if is_well else ["/feature"])


async def test_a_cluster_without_it_is_well() -> None:
    assert await unelectable(FakeTree({})) == []


def test_the_preflight_says_how_to_mend_it() -> None:
    seen = with_tree(HEALTHY, suspects=(Suspect(what="/feature", why="is no JSON object"),))
    (finding,) = (one for one in preflight(seen, SPEC, POLICY) if one.code == "PF15")
    assert finding.object == "/feature"
    assert "delete /feature" in finding.fix
