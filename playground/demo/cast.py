"""Temporal and our programs, as the demo has started them. Kept on disk, so that whoever was killed can be started again."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from domain.errors import Permanent
from playground import processes
from playground.demo.directory import DemoDirectory, how_to
from playground.demo.state import Tone
from playground.processes import Launch
from playground.services import Program, Services
from playground.temporal import TemporalPorts, TemporalServer


@dataclass(frozen=True)
class Cast:
    """Processes that anybody may kill at any moment."""

    temporal: TemporalServer
    services: Services

    @property
    def launches(self) -> tuple[Launch, ...]:
        """In the order in which they are started."""
        return (self.temporal.launch, *(self.services.launch(program) for program in Program))

    def missing(self) -> tuple[str, ...]:
        """The names of those that do not run."""
        return tuple(launch.name for launch in self.launches if processes.running(launch) is None)

    def start_missing(self) -> tuple[str, ...]:
        """Start those that do not run, as they were; gives their names. Raises Transient where one does not come up."""
        missing = self.missing()
        if self.temporal.launch.name in missing:
            self.temporal.start()
        self.services.start(*Program)
        self.services.await_ready()
        return missing

    def keep(self, directory: DemoDirectory) -> None:
        kept = {
            "temporal": str(self.temporal.program),
            "temporal_ports": asdict(self.temporal.ports),
            "api_port": self.services.api_port,
        }
        directory.cast.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def cast_of(directory: DemoDirectory, program: Path, ports: TemporalPorts, api_port: int) -> Cast:
    temporal = TemporalServer(directory.temporal, ports, program)
    of_spark = {name: value for name, value in os.environ.items() if name.startswith("KEEPERLESS_SPARK")}
    return Cast(
        temporal,
        Services(directory.services, temporal.address, api_port, temporal.ui_url, extra_environment=of_spark),
    )


def kept_cast(directory: DemoDirectory) -> Cast:
    """What `keep` wrote. Raises Permanent where no demo has come so far."""
    try:
        kept = json.loads(directory.cast.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Permanent(f"{directory.path}: nothing of a demo was started there. Start one with: make demo") from None
    return cast_of(directory, Path(kept["temporal"]), TemporalPorts(**kept["temporal_ports"]), kept["api_port"])


class RollCall:
    """Tells who of the cast has gone since the last time, and who is back."""

    def __init__(self, cast: Cast, directory: DemoDirectory) -> None:
        self._cast, self._directory = cast, directory
        self._gone: tuple[str, ...] = ()

    def changes(self) -> list[tuple[str, Tone]]:
        before, self._gone = self._gone, self._cast.missing()
        gone = [name for name in self._gone if name not in before]
        back = [name for name in before if name not in self._gone]
        again = how_to("start", self._directory.path)
        return [
            *((f"{name} has ended; start it again with: {again}", Tone.ALERT) for name in gone),
            *((f"{name} runs again", Tone.GOOD) for name in back),
        ]
