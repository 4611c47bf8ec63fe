"""The kinds of migration that are shipped. A new one is one line here."""

from domain.kinds import Kinds
from domain.zk_to_kraft.kind import ZK_TO_KRAFT

SHIPPED_KINDS = Kinds((ZK_TO_KRAFT,))
