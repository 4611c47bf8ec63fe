"""What a node's start command gives besides its file: by its specification, and by the command line of its process."""

from dataclasses import dataclass

from activities.ports.nodes import NodeDriver
from domain.cluster import NodeSpec
from domain.diagnosis.machines.file_owners import Sign, signs_in_command, signs_in_script
from domain.diagnosis.machines.start import Override, overrides_in, shown_overrides
from domain.errors import KeeperlessError

COMMAND_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Overrides:
    """Values by key. `running`: of the process; `None` where one runs and its command line could not be read."""

    specified: dict[str, str]
    running: dict[str, str] | None

    @property
    def given(self) -> dict[str, str]:
        """To the next start: the specified ones count where both give a key."""
        return {**(self.running or {}), **self.specified}

    @property
    def told(self) -> tuple[Override, ...]:
        """Without any value that may be a secret."""
        return shown_overrides(self.specified, self.running or {})


SCRIPT, SCRIPT_BYTES = b"#!", 256 * 1024


async def signs_of_command(driver: NodeDriver, node: NodeSpec) -> tuple[Sign, ...]:
    """That it writes the node's properties file before Kafka reads it. Raises `Permanent` where a script may not be read."""
    command, path = node.driver.service.start_command, node.properties_file
    found = [*signs_in_command(command, path)]
    for number, word in enumerate(command):
        text = await driver.read_part(word, 0, SCRIPT_BYTES) if word.startswith("/") and word != path else None
        if text is not None and text.startswith(SCRIPT):
            found += signs_in_script(word, text.decode(errors="replace"), path, command[number + 1 :])
    return tuple(found)


async def overrides_of(driver: NodeDriver, node: NodeSpec, pid: str = "") -> Overrides:
    """`pid`: of the process that runs; empty where none does, or its identity is no pid."""
    specified = overrides_in(node.driver.service.start_command)
    try:
        command = await driver.read_part(f"/proc/{pid}/cmdline", 0, COMMAND_BYTES) if pid.isdecimal() else b""
    except KeeperlessError:
        return Overrides(specified, None)
    return Overrides(specified, overrides_in((command or b"").decode(errors="replace").split("\0")))
