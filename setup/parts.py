"""What Python's package index does not bring, and a look at what it did. Runs in the finished environment.

Prints the folder of the jars as its last line, for `setup.environment` to remember.
"""

import subprocess
import sys

from domain.errors import Permanent, Transient
from playground.jars import installed_kafka
from playground.java import java_home, java_major_version
from playground.temporal import temporal_program


def announce(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    try:
        kafka = installed_kafka(announce)
        home = java_home()
        announce(f"Java {java_major_version(home)} for Kafka and ZooKeeper: {home}")
        temporal = temporal_program(announce=announce)
        version = subprocess.run([str(temporal), "--version"], capture_output=True, text=True, check=True, timeout=60)
        announce(f"Temporal's dev server: {version.stdout.strip()}")
    except (Permanent, Transient) as error:
        sys.exit(f"setup: {error}")
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"setup: Temporal's dev server does not start: {error}. Set TEMPORAL_CLI_PATH to one that does")
    print(kafka.path)


if __name__ == "__main__":
    main()
