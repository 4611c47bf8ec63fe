"""A topic's id in ZooKeeper and on disk: which fix is right where several causes look alike, and what tells them apart."""

import json
import re
import shlex

import pytest

from domain.decisions import Finding
from domain.observed.observation import Observation, PartitionFault
from domain.observed.topic_directories import DiskIds
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preflight import preflight
from tests.unit.conftest import Point, cluster_spec, observation, with_kafka, with_zookeeper
from tests.unit.surveys import surveyed, topic_znode, with_look, with_survey_part, with_topic

SPEC = cluster_spec()
HEALTHY = surveyed(observation(Point.BEFORE), SPEC)
TRUE, MADE_UP = "RzS9cdZ8QFyaV6xGT_q1-w", "Zm9vYmFyZm9vYmFyZm9vYg"
EVERYWHERE = {i: {f"/data/{i}/orders-0": TRUE} for i in (1, 2, 3)}


def lost(on_disk: dict[int, dict[str, str]]) -> Observation:
    return with_zookeeper(with_topic(HEALTHY, None, on_disk), topics_without_id=("orders",))


def findings(seen: Observation, code: str) -> list[Finding]:
    return [finding for finding in preflight(seen, SPEC, ZkToKraftPolicy()) if finding.code == code]


def one(seen: Observation, code: str) -> Finding:
    (finding,) = findings(seen, code)
    return finding


def commands(fix: str) -> list[list[str]]:
    """What the fix tells to type, as a shell would split it."""
    return [shlex.split(found) for found in re.findall(r"`(zookeeper-shell\.sh [^`]*)`", fix)]


def test_an_id_that_is_on_disk_is_put_back_before_an_election() -> None:
    found = one(lost(EVERYWHERE), "PF17")
    assert TRUE in found.observed
    assert "broker-1 /data/1/orders-0, broker-2 /data/2/orders-0, broker-3 /data/3/orders-0" in found.observed
    write, election = commands(found.fix)
    assert write[:-1] == ["zookeeper-shell.sh", SPEC.ensemble.connect, "set", "-v", "4", "/brokers/topics/orders"]
    assert json.loads(write[-1]) == {
        "version": 3,
        "topic_id": TRUE,
        "partitions": {"0": [1, 2, 3]},
        "adding_replicas": {},
        "removing_replicas": {},
    }
    assert election == ["zookeeper-shell.sh", SPEC.ensemble.connect, "delete", "/controller"]
    assert found.fix.endswith("make a new plan, or ask for the blockers again.")


def test_a_fix_says_how_to_log_in_where_znodes_are_protected() -> None:
    zookeeper = SPEC.ensemble.model_copy(update={"digest_auth": "env:ZOOKEEPER_AUTH"})
    protected = SPEC.model_copy(update={"zookeeper": zookeeper})
    (found,) = [f for f in preflight(lost(EVERYWHERE), protected, ZkToKraftPolicy()) if f.code == "PF17"]
    assert "enter `addauth digest USER:PASSWORD` with the identity of digest_auth" in found.fix


def test_a_directory_without_metadata_changes_nothing_where_the_others_agree() -> None:
    seen = with_look(lost({1: EVERYWHERE[1], 2: EVERYWHERE[2]}), (3,), topic_ids=DiskIds(without=("/data/3/orders-0",)))
    assert f'"topic_id":"{TRUE}"' in one(seen, "PF17").fix
    assert findings(seen, "PF25") == [], "what lacks an id is reported once"


def test_an_election_is_advised_only_where_no_disk_has_an_id() -> None:
    found = one(with_look(lost({}), (1, 2, 3), topic_ids=DiskIds(without=("/data/1/orders-0",))), "PF17")
    assert "no directory of its replicas has one" in found.observed
    assert found.fix.startswith("Elect a controller once: ")


ELECTS = "delete /controller"
NO_ELECTION: dict[str, tuple[Observation, str]] = {
    "ids that disagree": (lost(EVERYWHERE | {2: {"/data/2/orders-0": MADE_UP}}), "Do not elect a controller, restart"),
    "a broker that was not looked at": (
        with_survey_part(
            lost(EVERYWHERE),
            nodes=tuple(n.model_copy(update={"look": None}) if n.id == 2 else n for n in lost(EVERYWHERE).survey.nodes),  # type: ignore[union-attr]
        ),
        "Do not elect a controller and do not restart a broker yet",
    ),
    "a znode that is no JSON": (
        with_survey_part(lost(EVERYWHERE), topics=(topic_znode(None).model_copy(update={"content": ""}),)),
        "Do not elect a controller and do not restart a broker yet",
    ),
    "a topic that was made since the survey": (with_survey_part(lost({}), topics=()), "Do not elect a controller"),
    "no survey": (lost({}).model_copy(update={"survey": None}), "Do not elect a controller"),
}


@pytest.mark.parametrize("case", NO_ELECTION)
def test_no_election_is_advised_where_the_id_is_not_known(case: str) -> None:
    seen, begins = NO_ELECTION[case]
    found = one(seen, "PF17")
    assert found.fix.startswith(begins)
    assert ELECTS not in found.fix


def test_ids_that_disagree_are_each_shown_with_their_places() -> None:
    found = one(lost(EVERYWHERE | {2: {"/data/2/orders-0": MADE_UP}}), "PF17")
    assert f"{TRUE} on broker-1 /data/1/orders-0, broker-3 /data/3/orders-0" in found.observed
    assert f"{MADE_UP} on broker-2 /data/2/orders-0" in found.observed


def test_a_stray_directory_does_not_outvote_the_replicas() -> None:
    found = one(lost(EVERYWHERE | {1: EVERYWHERE[1] | {"/data/1/orders-7": MADE_UP}}), "PF17")
    assert f'"topic_id":"{TRUE}"' in found.fix


def test_a_live_replica_is_never_called_a_deleted_topic() -> None:
    """The whole topic has one id on disk, and ZooKeeper another: the znode is what is wrong."""
    found = findings(with_topic(HEALTHY, MADE_UP, EVERYWHERE), "PF25")
    assert [f.object for f in found] == [f"broker-{i} /data/{i}/orders-0" for i in (1, 2, 3)]
    for each in found:
        assert TRUE in each.observed
        assert MADE_UP in each.observed
        assert "assigned to this broker and in sync" in each.observed
        assert f'"topic_id":"{TRUE}"' in each.fix
        assert "deleted" not in each.fix


def test_a_topic_that_may_have_been_made_again_is_asked_about() -> None:
    seen = with_kafka(
        with_topic(HEALTHY, MADE_UP, EVERYWHERE), under_replicated=(PartitionFault(partition="orders-0", missing=(2,)),)
    )
    told = {f.object.partition(" ")[0]: f for f in findings(seen, "PF25")}
    assert "not in sync" in told["broker-2"].observed
    assert "deleted and created again" in told["broker-2"].fix
    assert "created again" not in told["broker-1"].fix


def test_one_replica_that_disagrees_with_the_others_is_asked_about() -> None:
    found = one(with_topic(HEALTHY, MADE_UP, {2: {"/data/2/orders-0": TRUE}}), "PF25")
    assert found.fix.startswith("Do not elect a controller, restart")
    assert TRUE in found.observed
    assert MADE_UP in found.observed


def test_a_directory_of_no_replica_is_moved_away() -> None:
    found = one(with_topic(HEALTHY, MADE_UP, {1: {"/data/1/orders-7": TRUE}}), "PF25")
    assert "no replica of it on this broker" in found.observed
    assert "move the directory out" in found.fix
