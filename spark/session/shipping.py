"""Our own code, sent along to a Spark that does not have it. Libraries (`requirements.lock`) its executors have themselves."""

import tempfile
import zipfile
from pathlib import Path

from pyspark.sql.connect.session import SparkSession

import domain
import spark

PACKAGES = (domain, spark)


def ship_code(session: SparkSession) -> None:
    """For this session only: two versions of us can use one Spark."""
    with tempfile.TemporaryDirectory(prefix="keeperless-code-") as folder:
        archive = Path(folder) / "keeperless.zip"
        write_code(archive)
        session.addArtifacts(str(archive), pyfile=True)


def write_code(archive: Path) -> None:
    """The packages as they lie here, importable from the zip."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as code:
        for package in PACKAGES:
            root = Path(str(package.__file__)).parent
            for path in sorted(root.rglob("*.py")):
                code.write(path, str(path.relative_to(root.parent)))
