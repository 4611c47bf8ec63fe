"""What the JVM of an embedded Spark is tuned for."""

from enum import StrEnum


class Profile(StrEnum):
    SMALL = "small"
    """Up to some 200,000 partitions: starts fast, takes little memory; its code is half as fast once there is a lot to do."""
    LARGE = "large"
    """Beyond: optimised code, and a collector that uses all cores."""

    @property
    def options(self) -> tuple[str, ...]:
        if self is Profile.SMALL:
            return ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss4m")
        return ("-XX:+UseParallelGC", "-Xss4m")
