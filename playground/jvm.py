"""The command line of a small Java server: little memory, little start-up work, everything it says on one stream."""

from dataclasses import dataclass
from pathlib import Path

from playground.jars import KafkaHome

SMALL_MACHINE = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # no second compiler: it costs more CPU at start than it saves in minutes
    "-XX:MaxMetaspaceSize=128m",
    "-XX:+ExitOnOutOfMemoryError",
    "-Xshare:auto",
    "-Djava.awt.headless=true",
)

LOG4J = """\
# Everything goes to standard output, which the node's driver appends to one file.
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.org.apache.kafka.metadata.migration=TRACE
"""


@dataclass(frozen=True)
class Runtime:
    """What every server of a playground shares."""

    java_home: Path
    kafka: KafkaHome
    log4j: Path
    archive: Path | None = None
    """A class data sharing archive. A JVM that cannot use it starts without it, only more slowly."""
    class_lists: Path | None = None
    """A folder into which every JVM writes, when it ends by itself, the list of the classes it has loaded."""

    def java(self, heap_mib: int, *options: str) -> tuple[str, ...]:
        """The launcher with its options up to the class path; the main class and its arguments follow."""
        shared = (f"-XX:SharedArchiveFile={self.archive}", "-Xlog:cds=off") if self.archive else ()
        recorded = (f"-XX:DumpLoadedClassList={self.class_lists}/%p.classes",) if self.class_lists else ()
        return (
            f"{self.java_home}/bin/java",
            f"-Xms{heap_mib // 3}m",
            f"-Xmx{heap_mib}m",
            *SMALL_MACHINE,
            *shared,
            *recorded,
            f"-Dlog4j.configuration=file:{self.log4j}",
            *options,
            "-cp",
            self.kafka.class_path,
        )
