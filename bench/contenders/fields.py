"""What of a kind is compared, for those who do it in their own way."""

from domain.drift.records import RowKind, Rule


def compared(kind: RowKind) -> list[str]:
    return [field.name for field in kind.values if field.rule is not Rule.NOT_COMPARED]
