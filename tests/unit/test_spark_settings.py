"""Settings of the checks: what is refused, and a key that nobody has to make by hand."""

import threading
from pathlib import Path

import pytest
from pydantic import ValidationError

from domain.errors import Permanent
from spark.session import provider
from spark.session.provider import java_home, server_plan, spark_provider
from spark.session.server import TOKEN_VARIABLE, command, environment
from spark.settings import CheckSettings
from spark.sources.build import resolve_secret


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CheckSettings:
    monkeypatch.setenv("KEEPERLESS_CHECKS_DIRECTORY", str(tmp_path / "checks"))
    return CheckSettings()


@pytest.mark.parametrize("value", ["local[2]", "spark://host:7077", "sc://", "sc://a b", "http://host", ""])
def test_what_is_no_spark_connect_is_refused(value: str) -> None:
    with pytest.raises(ValidationError):
        CheckSettings(spark=value)


@pytest.mark.parametrize("value", ["1", "0g", "1t", "-1g", "1g -agentpath:x"])
def test_what_is_no_size_of_a_heap_is_refused(value: str) -> None:
    with pytest.raises(ValidationError):
        CheckSettings(spark_driver_memory=value)


def test_a_token_is_named_and_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "is_pyspark_installed", lambda: True)
    with pytest.raises(Permanent, match="KEEPERLESS_SPARK_TOKEN") as refused:
        spark_provider(CheckSettings(spark="sc://host:15002/;use_ssl=true;token=sesame"), resolve_secret)
    assert "sesame" not in str(refused.value)
    monkeypatch.setenv("KEEPERLESS_SPARK_TOKEN", "sesame")
    with pytest.raises(ValidationError) as invalid:
        CheckSettings()
    assert "sesame" not in str(invalid.value)


def test_a_rotated_token_is_used_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(provider, "is_pyspark_installed", lambda: True)
    (tmp_path / "token").write_text("first\n")
    found = spark_provider(CheckSettings(spark="sc://host:15002", spark_token=f"file:{tmp_path}/token"), resolve_secret)
    assert found is not None
    assert found.endpoint().token == "first"
    (tmp_path / "token").write_text("second\n")
    assert found.endpoint().token == "second"
    assert not found.endpoint().has_our_code
    assert "second" not in repr(found.endpoint())


@pytest.mark.parametrize(("value", "is_installed"), [("off", True), ("embedded", False), ("sc://host", False)])
def test_without_spark_the_local_engine_is_meant(value: str, is_installed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "is_pyspark_installed", lambda: is_installed)
    assert spark_provider(CheckSettings(spark=value), resolve_secret) is None


def test_a_key_is_made_once_and_for_nobody_else(settings: CheckSettings) -> None:
    makers = [threading.Thread(target=settings.make_digest_key) for _ in range(8)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    key = resolve_secret(settings.digest_key_reference)
    assert len(key) == 64
    settings.make_digest_key()
    assert resolve_secret(settings.digest_key_reference) == key
    (file,) = settings.checks_directory.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_key_that_is_given_is_taken(settings: CheckSettings) -> None:
    given = settings.model_copy(update={"digest_key": "env:THE_KEY"})
    given.make_digest_key()
    assert given.digest_key_reference == "env:THE_KEY"
    assert not settings.checks_directory.exists()


def test_the_command_line_says_what_the_settings_say_and_not_the_token(
    settings: CheckSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark.session.server.spark_home", lambda: Path("/spark"))
    plan = server_plan(settings.model_copy(update={"spark_cores": 3, "spark_driver_memory": "2g"}))
    told = environment(plan, "sesame", {"SPARK_REMOTE": "sc://another", "PYTHONHOME": "/x", "THE_KEY": "k"})
    assert told[TOKEN_VARIABLE] == "sesame"
    assert told["THE_KEY"] == "k"
    assert not {"SPARK_REMOTE", "PYTHONHOME"} & told.keys()
    line = command(plan)
    assert "sesame" not in " ".join(line)
    assert {"-Xmx2g", "-Dspark.master=local[3]", "-Dspark.ui.enabled=false", "-XX:TieredStopAtLevel=1"} <= set(line)


def test_a_java_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="KEEPERLESS_SPARK_JAVA_HOME"):
        java_home(tmp_path)
    assert (java_home(None) / "bin" / "java").exists()
