"""What the README tells people to type exists, and so does what it points at."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from domain.checks.check import SUPPORTED_RELEASE

REPOSITORY = Path(__file__).parent.parent.parent
PAGES = [*sorted(REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").rglob("*.md"))]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
MAKEFILE = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


def test_the_two_commands_are_what_a_newcomer_is_given() -> None:
    assert re.findall(r"```sh\n(.+?)\n```", README)[:2] == ["make demo", "make test test-real"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_make_target_exists(page: Path) -> None:
    said = re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))
    assert set(said) <= TARGETS


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_make_would_run_it(target: str) -> None:
    """A dry run: every target parses, and every program in the environment that it calls is there."""
    dry = subprocess.run(["make", "--dry-run", target], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    programs = re.findall(r"^(\.venv/bin/\S+)", dry.stdout, re.MULTILINE)
    assert all((REPOSITORY / program).exists() for program in programs)


def test_help_lists_every_target() -> None:
    told = subprocess.run(["make"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^  make ([a-z-]+)", told, re.MULTILINE)) == TARGETS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_resolve(page: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    local = [target.partition("#")[0] for target in targets if "://" not in target]
    missing = [target for target in local if target and not (page.parent / target).exists()]
    assert not missing


def test_every_program_named_is_installed() -> None:
    scripts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    named = set(re.findall(r"`(keeperless-[a-z]+)`", README))
    assert named == set(scripts)


def test_what_the_readme_says_of_limits_is_so() -> None:
    """The strongest claims, each held to the code that keeps it."""
    from api.settings import ApiSettings
    from playground.temporal import SEARCH_ATTRIBUTES

    assert f"Kafka {SUPPORTED_RELEASE}.x only" in README
    with pytest.raises(ValueError, match="without authentication"):
        ApiSettings(bind_address="0.0.0.0")  # noqa: S104 - that it is refused is the point
    assert all(f"`{name}`" in README for name in SEARCH_ATTRIBUTES)
