"""Which address Maven's settings give for its central repository."""

from pathlib import Path

import pytest

from domain.errors import Permanent
from playground.maven_settings import mirror_of_central

NAMESPACE = ' xmlns="http://maven.apache.org/SETTINGS/1.2.0"'


def settings(folder: Path, *mirrors: tuple[str, str], namespace: str = "") -> Path:
    listed = "".join(f"<mirror><id>m</id><mirrorOf>{of}</mirrorOf><url> {url} </url></mirror>" for of, url in mirrors)
    path = folder / "settings.xml"
    path.write_text(f"<settings{namespace}><mirrors>{listed}</mirrors></settings>")
    return path


@pytest.mark.parametrize("namespace", ["", NAMESPACE])
@pytest.mark.parametrize("of", ["central", "*", "external:*", "repo1,central", "*,!internal"])
def test_a_mirror_of_central_is_found(tmp_path: Path, of: str, namespace: str) -> None:
    path = settings(tmp_path, ("other", "https://other.example"), (of, "https://mirror.example/maven"), namespace=namespace)
    assert mirror_of_central(path) == "https://mirror.example/maven"


@pytest.mark.parametrize("of", ["*,!central", "other", "", "centralised"])
def test_a_mirror_of_something_else_is_none(tmp_path: Path, of: str) -> None:
    assert mirror_of_central(settings(tmp_path, (of, "https://mirror.example"))) is None


def test_the_first_one_counts(tmp_path: Path) -> None:
    assert (
        mirror_of_central(settings(tmp_path, ("*", "https://a.example"), ("central", "https://b.example")))
        == "https://a.example"
    )


def test_without_settings_there_is_no_mirror(tmp_path: Path) -> None:
    assert mirror_of_central(tmp_path / "settings.xml") is None
    (tmp_path / "settings.xml").write_text("<settings/>")
    assert mirror_of_central(tmp_path / "settings.xml") is None


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "settings.xml").write_text("<settings>")
    with pytest.raises(Permanent, match=r"settings\.xml is not XML"):
        mirror_of_central(tmp_path / "settings.xml")
