"""A playground inside a unit of systemd, as on a machine of somebody's CI."""

from typing import Any

import pytest

from playground import own_unit

UNIT = ("runner.service", False)


@pytest.mark.parametrize(("unit", "codes"), [(None, ["PF06"]), (UNIT, ["PF06", "PF43"])])
def test_its_nodes_may_end_with_it(unit: tuple[str, bool] | None, codes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_unit, "own_unit", lambda: unit)
    other: dict[str, Any] = {"code": "PF06", "object": "*", "by": "ann", "reason": "a test cluster"}
    policy = own_unit.accepting({"accepted_findings": [other]})
    assert [accepted["code"] for accepted in policy["accepted_findings"]] == codes
