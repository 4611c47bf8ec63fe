"""`Orders`: what people have told a migration, as far as it matters for what comes next. Plain: no Temporal, no clock."""

from dataclasses import dataclass, field

from domain.contracts import CarriedState, RevertOrder
from domain.decisions import Intent, Label
from domain.records import ApprovalSeen, ApprovalState

MOST_REFUSED, MOST_TOLD = 20, 1000
"""Commands that may still be on their way a second time, and characters of each reason."""


@dataclass
class Orders:
    """`approvals`: gate → command. `seen`: their states in the ledger, as of the last assessment. `refused`: command → why, for
    those that were reported as refused. `revert`: the rollback, once it was accepted. `has_news`: look again because of it.

    `is_stopped`: by an error that only a person can fix. More than a hold, which takes effect after an irreversible section.
    `holds` counts people's holds, so that an answer which was long in coming lifts no hold that came after the question.
    """

    approvals: dict[Label, str] = field(default_factory=dict)
    seen: tuple[ApprovalSeen, ...] = ()
    applied: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    is_held: bool = False
    is_stopped: bool = False
    held_because: str = ""
    holds: int = 0
    revert: RevertOrder | None = None
    has_news: bool = False

    @classmethod
    def of(cls, carried: CarriedState) -> "Orders":
        return cls(
            approvals=dict(carried.approvals),
            applied=list(carried.applied_commands),
            refused=dict(carried.refused_commands),
            is_held=carried.is_held,
            held_because=carried.held_because,
            revert=carried.revert,
        )

    @property
    def intent(self) -> Intent:
        return Intent.FORWARD if self.revert is None else Intent.REVERT

    def is_known(self, command_id: str | None) -> bool:
        return command_id is not None and command_id in self.applied

    def is_repeated(self, command_id: str | None) -> bool:
        """True for a command seen before; otherwise remembers it."""
        if command_id is None or self.is_known(command_id):
            return command_id is not None
        self.remember(command_id)
        return False

    def remember(self, command_id: str | None) -> None:
        """A command that has had its effect. Delivered once more, whoever delivers it, it has none."""
        if command_id is not None and command_id not in self.applied:
            self.applied.append(command_id)

    def refuse(self, command_id: str | None, why: str) -> None:
        if command_id is not None:
            self.refused[command_id] = why[:MOST_TOLD]
            for oldest in list(self.refused)[:-MOST_REFUSED]:
                del self.refused[oldest]

    def approve(self, gate: Label, command_id: str) -> None:
        self.approvals[gate], self.has_news = command_id, True

    def state_of(self, gate: Label) -> ApprovalState | None:
        """The state of the approval that was given last at a gate, as far as the last assessment knows."""
        given = self.approvals.get(gate)
        return next((one.state for one in self.seen if one.command_id == given), None)

    def hold(self, because: str) -> None:
        self.is_held, self.held_because, self.has_news = True, because, True
        self.holds += 1

    def stop(self, because: str) -> None:
        self.is_held, self.is_stopped, self.held_because = True, True, because

    def resume(self) -> None:
        self.is_held, self.is_stopped, self.held_because, self.has_news = False, False, "", True

    def turn(self, order: RevertOrder) -> None:
        """Go back from now on. A loss that was accepted stays accepted."""
        accepted = self.revert.accepted_losses if self.revert is not None else ()
        losses = tuple(dict.fromkeys((*accepted, *order.accepted_losses)))
        self.revert, self.has_news = order.model_copy(update={"accepted_losses": losses}), True
        self.remember(order.command_id)
