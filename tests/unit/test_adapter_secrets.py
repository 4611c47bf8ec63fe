"""Secrets from the environment and from files."""

from pathlib import Path

import pytest

from activities.adapters.secrets import EnvironmentAndFileSecrets
from domain.errors import Permanent

SECRETS = EnvironmentAndFileSecrets()


def test_the_environment_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("first", "second", ""):
        monkeypatch.setenv("ZK_AUTH", value)
        assert SECRETS.resolve("env:ZK_AUTH").reveal() == value


def test_a_file_is_read_each_time_without_its_last_line_ending(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    for content, value in ((b"one\n", "one"), (b"a=1\nb=2\r\n", "a=1\nb=2"), (b" spaces stay \n\n", " spaces stay \n")):
        file.write_bytes(content)
        assert SECRETS.resolve(f"file:{file}").reveal() == value


def test_a_secret_does_not_show_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZK_AUTH", "hunter2")
    secret = SECRETS.resolve("env:ZK_AUTH")
    assert "hunter2" not in f"{secret} {secret!r}"


@pytest.mark.parametrize("reference", ["env:NOT_SET_ANYWHERE", "file:/no/such/file", "file:/", "vault:x", "plain"])
def test_what_is_missing_is_permanent_and_named(reference: str) -> None:
    with pytest.raises(Permanent) as refused:
        SECRETS.resolve(reference)
    assert reference in str(refused.value)


def test_bytes_that_are_no_text_do_not_leak(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"hunter2\xff")
    with pytest.raises(Permanent) as refused:
        SECRETS.resolve(f"file:{file}")
    assert "hunter2" not in f"{refused.value}{refused.value.__cause__}"
