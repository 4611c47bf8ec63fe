"""The pages say what the code says."""

import re
from pathlib import Path

import pytest

from docs.generate import PAGES

REPOSITORY = Path(__file__).parent.parent.parent
PREFLIGHT = REPOSITORY / "domain" / "zk_to_kraft" / "preflight.py"
DECISIONS = sorted((REPOSITORY / "docs" / "decisions").glob("*.md"))
PARTS = ["Context", "Decision", "Rejected", "Consequences"]


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_what_would_be_written(name: str) -> None:
    assert (REPOSITORY / "docs" / name).read_text(encoding="utf-8") == PAGES[name](), "make docs"


def test_every_preflight_code_is_explained_and_no_other() -> None:
    raised = set(re.findall(r'"(PF\d\d)"', PREFLIGHT.read_text(encoding="utf-8")))
    explained = re.findall(r"^\| (PF\d\d) \|", (REPOSITORY / "docs" / "checks.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert raised
    assert explained == sorted(raised)


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_its_four_parts(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.match(rf"# {page.name[:3]} · ", text)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == PARTS


def test_decisions_are_numbered_without_gaps() -> None:
    assert [page.name[:3] for page in DECISIONS] == [f"{number:03}" for number in range(1, len(DECISIONS) + 1)]
