"""What is wrong with a field, in words that say what is expected there, with an example where that helps."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from domain.policy import why_not_to_be_met
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from tests.api.conftest import ASKED

Expect = Callable[[httpx.Response, int, str], dict[str, Any]]
DURATION = "Expected a duration: PT5M (five minutes, ISO 8601), or seconds as a number: 300"
ACCEPTED = {"by": "ann", "code": "PF06", "object": "*", "reason": "x"}
WHOLE = "Expected a whole number: 3"
PYTHONS_WORDS = ("timedelta", "tuple", "dictionary", "Value error", "Input should")


async def told(api: Any, expect_problem: Expect, **body: Any) -> dict[str, str]:
    """Messages, by field."""
    answer = await api.http.post("/plans", json={"cluster": "orders", **ASKED} | body)
    problem = expect_problem(answer, 422, "invalid-request")
    assert not [word for word in PYTHONS_WORDS if word in answer.text], answer.text
    return {error["field"]: error["message"] for error in problem["errors"]}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("min_soak", "", DURATION),
        ("min_soak", "5m", DURATION),
        ("min_soak", None, DURATION),
        ("min_soak", True, DURATION),
        ("max_client_pause", False, DURATION),
        ("min_soak", -5, "Expected 0 seconds or more"),
        ("poll_interval", 0, "Expected more than 0 seconds"),
        ("max_parallel", True, WHOLE),
        ("max_parallel", "3", WHOLE),
        ("max_parallel", 1.5, WHOLE),
        ("max_parallel", 0, "Expected 1 or more"),
        ("canaries", "yes", "Expected true or false"),
        ("canaries", 1, "Expected true or false"),
        ("may_be_unavailable", "orders", 'Expected a list: ["one", "another"]'),
        ("may_be_unavailable", [1], 'Expected text: "orders"'),
        ("accepted_findings", ["PF06"], 'Expected an object: {"name": "value"}'),
        ("min_soka", "PT1S", "There is no such field: see /openapi.json for the fields that exist"),
    ],
)
async def test_a_field_of_the_policy(api: Any, expect_problem: Expect, field: str, value: Any, message: str) -> None:
    (found,) = (await told(api, expect_problem, policy={field: value})).items()
    assert found[0].startswith(f"policy.{field}")
    assert found[1] == message


@pytest.mark.parametrize("policy", [{"restart_deadline": 3}, {"stable_samples": 1, "poll_interval": 60}])
def test_a_policy_that_could_be_met_is_nobodys_to_refuse(policy: dict[str, Any]) -> None:
    assert why_not_to_be_met(ZkToKraftPolicy.model_validate(policy)) == ""


@pytest.mark.parametrize(
    ("policy", "named"),
    [
        ({"poll_interval": 1000}, "poll_interval"),
        ({"poll_interval": "PT30S"}, "restart_deadline"),
        ({"stable_samples": 500}, "restart_deadline"),
        ({"restart_deadline": 2}, "restart_deadline"),
    ],
)
async def test_a_policy_that_cannot_be_met_is_refused(
    api: Any, expect_problem: Expect, policy: dict[str, Any], named: str
) -> None:
    """Each of its values is one that may be. What was started with such a one is still read."""
    (found,) = (await told(api, expect_problem, policy=policy)).items()
    assert found[0] == "policy"
    assert found[1].startswith(f"{named}: expected")
    ZkToKraftPolicy.model_validate(policy)


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"policy": 5}, "policy", 'Expected an object: {"name": "value"}'),
        ({"kind": "sideways"}, "kind", "Expected 'zk-to-kraft'"),
        ({"cluster": "Orders!"}, "cluster", "Expected text that matches ^[a-z0-9][a-z0-9-]{0,62}$"),
        ({"rehearse": "maybe"}, "rehearse", "Expected true or false"),
        (
            {"policy": {"accepted_findings": [{"by": "", "code": "PF06", "object": "*", "reason": "x"}]}},
            "",
            "Expected 1 character or more",
        ),
        ({"policy": {"accepted_findings": [{"by": "a", "code": "PF06", "object": "*"}]}}, "", "It is missing"),
    ],
)
async def test_another_field(api: Any, expect_problem: Expect, body: dict[str, Any], field: str, message: str) -> None:
    (found,) = (await told(api, expect_problem, **body)).items()
    assert found[0] == field or not field
    assert found[1] == message


async def test_what_we_say_ourselves_has_no_prefix(api: Any, expect_problem: Expect) -> None:
    body = {"cluster": "orders", "kind": "zk-to-kraft", "plan_id": "01a1f903-3505-72c4-97b0-3c79d6c47662", "policy": {}}
    problem = expect_problem(await api.http.post("/migrations", json=body), 422, "invalid-request")
    assert problem["errors"][0]["message"].startswith("A plan has its policy")


@pytest.mark.parametrize("headers", [{}, {"content-type": "application/x-www-form-urlencoded"}])
async def test_a_body_that_is_not_said_to_be_json_is_told_which_header_to_send(
    api: Any, expect_problem: Expect, headers: dict[str, str]
) -> None:
    answer = await api.http.post("/plans", content=b'{"cluster": "orders", "kind": "zk-to-kraft"}', headers=headers)
    (error,) = expect_problem(answer, 422, "invalid-request")["errors"]
    expected = "The body is not read as JSON: send it with the header Content-Type: application/json"
    assert error == {"where": "body", "field": "", "message": expected}


async def test_a_body_that_is_not_there_or_no_object(api: Any, expect_problem: Expect) -> None:
    (error,) = expect_problem(await api.http.post("/plans"), 422, "invalid-request")["errors"]
    assert error["message"] == "The body is missing: send a JSON object, with the header Content-Type: application/json"
    (error,) = expect_problem(await api.http.post("/plans", json=[]), 422, "invalid-request")["errors"]
    assert error["message"] == 'Expected an object: {"name": "value"}'


async def test_an_address_and_a_query(api: Any, expect_problem: Expect) -> None:
    (error,) = expect_problem(await api.http.get("/plans/first"), 422, "invalid-request")["errors"]
    assert error["message"] == "Expected an id (UUID): 01a1f903-3505-72c4-97b0-3c79d6c47662"
    for limit, message in (("many", WHOLE), ("0", "Expected 1 or more"), ("5000", "Expected 1000 or less")):
        (error,) = expect_problem(await api.http.get("/plans", params={"limit": limit}), 422, "invalid-request")["errors"]
        assert (error["where"], error["field"], error["message"]) == ("query", "limit", message)


async def test_numbers_and_lists_of_a_specification(api: Any, expect_problem: Expect, make_spec: Callable[[], Any]) -> None:
    spec = make_spec().model_dump(mode="json")
    spec["brokers"][0] |= {"id": True, "driver": None}
    spec["brokers"][1]["metrics"] = {"kind": "x"}
    spec["brokers"][2]["metrics"] = {}
    spec["quorum"] = {"controllers": []}
    problem = expect_problem(await api.http.put(f"/clusters/{spec['name']}", json=spec), 422, "invalid-request")
    assert {error["field"]: error["message"] for error in problem["errors"]} == {
        "brokers.0.id": WHOLE,
        "brokers.0.driver": 'Expected an object: {"name": "value"}',
        "brokers.1.metrics": "Expected one of 'jolokia', 'prometheus' as 'kind'",
        "brokers.2.metrics": "Expected 'kind', which says what it is",
        "quorum.controllers": "Expected 1 item or more",
    }
