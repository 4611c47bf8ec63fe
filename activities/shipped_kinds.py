"""The kinds of migration that workers run. A new one is one line here."""

from activities.ports.kinds import ActivityKinds
from activities.zk_to_kraft.kind import ZK_TO_KRAFT_AT_WORK

SHIPPED_KINDS = ActivityKinds((ZK_TO_KRAFT_AT_WORK,))
