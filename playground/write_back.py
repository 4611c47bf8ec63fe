"""Configuration management that writes files back: once a second every file is what it says, unless it is paused.

As an agent does on a node: a run that has begun goes on when somebody pauses it. So whoever asks whether it is paused is told
once no run is under way.
"""

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from domain.cluster import NodeSpec

EVERY_SECONDS = 1.0


class WriteBack(AbstractContextManager["WriteBack"]):
    """One loop for many nodes, each with a pause of its own. `written`: how often, by node id."""

    def __init__(self, nodes: Sequence[NodeSpec], directory: Path) -> None:
        self._directory = directory
        self._paths = {node.id: Path(node.properties_file) for node in nodes}
        self._wanted = {node_id: path.read_bytes() for node_id, path in self._paths.items() if path.exists()}
        self.written = dict.fromkeys(self._paths, 0)
        self._is_over = threading.Event()
        self._loop = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "WriteBack":
        self._directory.mkdir(parents=True, exist_ok=True)
        self._loop.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_over.set()
        self._loop.join(10)

    def learn(self) -> None:
        """Take the files as they are now for what they should be: what people do before the end. It knows no others."""
        self._wanted = {node_id: self._paths[node_id].read_bytes() for node_id in self._wanted}

    def is_paused(self, node_id: int) -> bool:
        return self._flag(node_id).exists()

    def hook(self, node_id: int) -> dict[str, Any]:
        """As a specification names it."""
        flag, run = self._flag(node_id), self._running(node_id)
        ask = '[ -e "$0" ] || exit 1; while [ -e "$1" ]; do sleep 0.05; done'
        return {
            "pause": ["touch", str(flag)],
            "is_paused": ["sh", "-c", ask, str(flag), str(run)],
            "resume": ["rm", "-f", str(flag)],
        }

    def _flag(self, node_id: int) -> Path:
        return self._directory / f"{node_id}.paused"

    def _running(self, node_id: int) -> Path:
        return self._directory / f"{node_id}.running"

    def _run(self) -> None:
        while not self._is_over.wait(EVERY_SECONDS):
            for node_id, content in self._wanted.items():
                self._run_once(node_id, content)

    def _run_once(self, node_id: int, content: bytes) -> None:
        run = self._running(node_id)
        run.touch()
        if not self.is_paused(node_id):
            self._paths[node_id].write_bytes(content)
            self.written[node_id] += 1
        run.unlink()
