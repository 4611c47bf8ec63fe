"""A class data sharing archive: the embedded Spark starts from it in half the time. `python -m spark.session.classes` makes it.

Made once, beside PySpark: the classes that a server loads until it has compared something are listed, then dumped. A JVM that
finds another java or other jars than those of the dump starts without it.
"""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from spark.session.provider import java_home
from spark.session.server import ConnectServer, ServerPlan, class_archive, class_path

DUMP_SECONDS = 300


def make_archive() -> Path:
    """It appears by rename, whole or not at all."""
    from spark.engine.remote import warm_up
    from spark.session.connect import new_session_id, session

    archive, java = class_archive(), java_home(None)
    fresh = archive.with_suffix(".new")
    with tempfile.TemporaryDirectory(prefix="keeperless-classes-") as folder:
        seen, wanted = Path(folder) / "seen", Path(folder) / "wanted"
        plan = ServerPlan(Path(folder) / "spark", java, options=(f"-XX:DumpLoadedClassList={seen}",))
        plan.directory.mkdir()
        with plan.log.open("ab") as log:
            server = ConnectServer(plan, log)
        try:
            with session(server.await_endpoint(), new_session_id()) as spark:
                warm_up(spark)
        finally:
            server.stop()
        wanted.write_text("\n".join(union_of([seen])) + "\n", encoding="utf-8")
        dump(java, wanted, class_path(), fresh)
    fresh.replace(archive)
    return archive


def union_of(lists: Sequence[Path]) -> list[str]:
    """Each class once, in order of first appearance; comments, and classes made at run time, are left out."""
    lines = (line for path in lists for line in path.read_text(encoding="utf-8").splitlines())
    names = (line.split(" id:")[0] for line in lines if not line.startswith("#") and " source:" not in line)
    return list(dict.fromkeys(names))


def dump(java: Path, names: Path, class_path: str, archive: Path) -> None:
    """`java`: its home. `names`: a file with one class a line."""
    options = ("-XX:+UseSerialGC", "-Xshare:dump", f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={archive}")
    command = [f"{java}/bin/java", *options, "-Xlog:cds=off", "-cp", class_path]
    subprocess.run(command, check=True, capture_output=True, timeout=DUMP_SECONDS)


if __name__ == "__main__":
    make_archive()
