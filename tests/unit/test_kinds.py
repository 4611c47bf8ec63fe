"""What depends on the kind of migration: kept unread, read by its kind, and chosen by `kind` in a request."""

from datetime import timedelta
from typing import Annotated, Any

import pytest
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from api.by_kind import ByKind
from api.requests import MigrationRequest
from domain.cluster import JolokiaEndpoint
from domain.kinds import Kind, Kinds
from domain.of_kind import Wanted
from domain.policy import MigrationPolicy
from domain.questions import PreviewRequest
from domain.shipped_kinds import SHIPPED_KINDS
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.wanted import ZkToKraftWanted, achieved, aimed
from playground.fakes.spec import fake_spec
from playground.wanted import before, wanted_json, wanted_of

SPEC = fake_spec()
WANTED = wanted_of(SPEC)
PF02 = {"code": "PF02", "object": "*", "by": "ann", "reason": "known"}


class FactorPolicy(MigrationPolicy):
    """Of a kind that is not shipped."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    throttle: int = 7


class FactorWanted(Wanted):
    model_config = ConfigDict(frozen=True, extra="forbid")

    factor: int = Field(ge=2)


FACTOR = Kind(
    name="replication-factor",
    policy=FactorPolicy,
    wanted=FactorWanted,
    aimed=lambda spec, _: spec,
    achieved=lambda spec, _: spec,
    finding_codes=("PF01",),
    loss_names=lambda _: frozenset(),
    loss_forms=(),
    next_steps=lambda *_: (),
    gates=("shrink",),
    final_gates=frozenset(),
)
ORDERS = ByKind.of(MigrationRequest, Kinds((*SHIPPED_KINDS.values(), FACTOR)))
ORDER: TypeAdapter[MigrationRequest] = TypeAdapter(Annotated[MigrationRequest, ORDERS])


def complaints(body: Any) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        ORDER.validate_python(body)
    return {".".join(map(str, error["loc"])): error["msg"] for error in caught.value.errors()}


def test_a_request_is_read_as_its_kind_has_it() -> None:
    factor = ORDER.validate_python({"cluster": "c", "kind": "replication-factor", "wanted": {"factor": 3}})
    assert (factor.policy, factor.wanted) == (FactorPolicy(), FactorWanted(factor=3))
    kraft = ORDER.validate_python({"cluster": "c", "kind": "zk-to-kraft", "wanted": wanted_json(SPEC)})
    assert (kraft.policy, kraft.wanted) == (ZkToKraftPolicy(), WANTED)


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        ({"kind": "sideways"}, "kind", "Input should be 'zk-to-kraft' or 'replication-factor'"),
        ({}, "kind", "Field required"),
        ({"kind": ["zk-to-kraft"]}, "kind", "Input should be 'zk-to-kraft' or 'replication-factor'"),
        ({"kind": "zk-to-kraft", "policy": {"throttle": 1}}, "policy.throttle", "Extra inputs are not permitted"),
        ({"kind": "replication-factor", "policy": {"min_soak": 1}}, "policy.min_soak", "Extra inputs are not permitted"),
        ({"kind": "replication-factor", "wanted": {"factor": 1}}, "wanted.factor", "greater than or equal to 2"),
        ({"kind": "replication-factor"}, "", "wanted is missing"),
        ({"kind": "replication-factor", "policy": {"accepted_findings": [PF02]}}, "policy", "PF02 is not the code of a check"),
        (
            {"kind": "replication-factor", "policy": {"approvers": {"finalize": 2}}},
            "policy",
            "finalize is not a gate. Gates: shrink",
        ),
        ({"kind": "zk-to-kraft", "policy": {"approvers": {"shrink": 2}}}, "policy", "shrink is not a gate. Gates: finalize,"),
        (
            {"kind": "zk-to-kraft", "policy": {"approvers": {"a b": 2}}},
            "policy.approvers.a b.[key]",
            "String should match pattern",
        ),
    ],
)
def test_a_mistake_is_told_at_its_field_without_the_kind(body: dict[str, Any], field: str, says: str) -> None:
    assert says in complaints({"cluster": "c"} | body)[field]


def test_the_schema_of_a_request_is_one_of_the_kinds() -> None:
    schema = ORDER.json_schema()
    assert schema["discriminator"]["propertyName"] == "kind"
    assert set(schema["$defs"]) >= {"ZkToKraftMigrationRequest", "ReplicationFactorMigrationRequest"}


def test_a_payload_keeps_the_fields_of_its_kind_unread() -> None:
    policy = ZkToKraftPolicy(min_soak=timedelta(hours=7), stable_samples=2)
    read = PreviewRequest.model_validate_json(PreviewRequest(kind="zk-to-kraft", cluster="c", policy=policy).model_dump_json())
    assert type(read.policy) is MigrationPolicy
    assert read.policy.stable_samples == 2
    assert ZkToKraftPolicy.of(read.policy) == policy
    assert ZkToKraftPolicy.of(policy) is policy
    with pytest.raises(ValidationError, match="min_soak"):
        FactorPolicy.of(read.policy)


def test_a_migration_sees_the_cluster_with_what_it_wants() -> None:
    assert aimed(before(SPEC), WANTED) == SPEC
    assert aimed(before(SPEC), Wanted.model_validate_json(WANTED.model_dump_json())) == SPEC
    assert achieved(before(SPEC), WANTED) == SPEC.model_copy(update={"zookeeper": None})


def test_a_quorum_that_is_registered_is_the_one_that_is_wanted() -> None:
    nowhere = JolokiaEndpoint(url="http://nowhere")
    elsewhere = SPEC.with_quorum_changed(controllers=tuple(c.model_copy(update={"metrics": nowhere}) for c in SPEC.controllers))
    assert aimed(elsewhere, WANTED) == elsewhere
    with pytest.raises(ValueError, match="is another one"):
        aimed(SPEC.with_quorum_changed(listener="OTHER"), WANTED)


def test_what_a_cluster_cannot_become_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to migrate from"):
        aimed(SPEC.model_copy(update={"zookeeper": None}), WANTED)
    clash = tuple(controller.model_copy(update={"id": 1}) for controller in SPEC.controllers[:1])
    with pytest.raises(ValueError, match="node ids"):
        aimed(before(SPEC), WANTED.model_copy(update={"controllers": clash}))
    with pytest.raises(ValueError, match="use an odd number"):
        ZkToKraftWanted(controllers=SPEC.controllers[:2])
