"""A playground inside a unit of systemd, as on a machine of somebody's CI."""

from typing import Any

import pytest

from playground import own_unit

UNIT = {"name": "runner.service", "kill_mode": "control-group"}


@pytest.mark.parametrize(("unit", "codes"), [(None, ["PF06"]), (UNIT, ["PF06", "PF43"])])
def test_its_nodes_may_end_with_it(unit: dict[str, str] | None, codes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_unit, "unit", lambda: unit)
    other: dict[str, Any] = {"code": "PF06", "object": "*", "by": "ann", "reason": "a test cluster"}
    policy = own_unit.accepting({"accepted_findings": [other]})
    assert [accepted["code"] for accepted in policy["accepted_findings"]] == codes
