"""`Orders`: what people have told a migration, as far as it matters for what comes next. Plain: no Temporal, no clock."""

from dataclasses import dataclass, field

from domain.contracts import AdoptRequest, CarriedState
from domain.decisions import GateName


@dataclass
class Orders:
    """`approvals`: gate → command. `unadopted`: approvals that came without a command. `has_news`: look anew because of it.

    `is_stopped`: by an error that only a person can mend. More than a hold, which finalisation once begun does not obey.
    """

    approvals: dict[GateName, str] = field(default_factory=dict)
    applied: list[str] = field(default_factory=list)
    unadopted: list[AdoptRequest] = field(default_factory=list)
    is_held: bool = False
    is_stopped: bool = False
    held_because: str = ""
    has_news: bool = False

    @classmethod
    def of(cls, carried: CarriedState) -> "Orders":
        return cls(
            approvals=dict(carried.approvals),
            applied=list(carried.applied_commands),
            is_held=carried.is_held,
            held_because=carried.held_because,
        )

    def is_known(self, command_id: str | None) -> bool:
        return command_id is not None and command_id in self.applied

    def is_repeated(self, command_id: str | None) -> bool:
        """True for a command seen before; otherwise remembers it."""
        if command_id is None or self.is_known(command_id):
            return command_id is not None
        self.applied.append(command_id)
        return False

    def withdraw(self, gate: GateName) -> None:
        """An approval that somebody has said no to since must not come back when the evidence does."""
        self.approvals.pop(gate, None)
        self.unadopted = [message for message in self.unadopted if message.gate is not gate]

    def hold(self, because: str) -> None:
        self.is_held, self.held_because, self.has_news = True, because, True

    def stop(self, because: str) -> None:
        self.is_held, self.is_stopped, self.held_because = True, True, because

    def resume(self) -> None:
        self.is_held, self.is_stopped, self.held_because, self.has_news = False, False, "", True
