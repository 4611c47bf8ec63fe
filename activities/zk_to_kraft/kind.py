"""ZooKeeper to KRaft, as activities see it."""

from collections.abc import Callable
from typing import Any

from activities.ports.kafka import Listeners
from activities.ports.kinds import ActivityKind
from activities.ports.ports import Ports
from activities.zk_to_kraft.copies import compare_copy, keep_metadata
from activities.zk_to_kraft.lookups import migration_lookups
from activities.zk_to_kraft.metadata_check import compare_metadata
from activities.zk_to_kraft.previewing import preview, runbook
from activities.zk_to_kraft.provisioning import Provisioning
from activities.zk_to_kraft.starting import Starting
from activities.zk_to_kraft.surveying import with_survey
from activities.zk_to_kraft.suspects import with_suspects
from activities.zk_to_kraft.window.leaving import Leaving
from activities.zk_to_kraft.window.wiping import Wiping
from domain.drift.report import CheckName
from domain.zk_to_kraft.assessment import assess, is_survey_needed, sight_of
from domain.zk_to_kraft.blockers import ZK_TO_KRAFT_DIAGNOSIS
from domain.zk_to_kraft.invariant import ensure_allowed_by
from domain.zk_to_kraft.kind import ZK_TO_KRAFT
from domain.zk_to_kraft.planning.plan import plan_of, why_not_rehearsed
from domain.zk_to_kraft.policy import ZkToKraftPolicy, longest_window
from domain.zk_to_kraft.rolls import ROLLS


def _effects(ports: Ports, listeners: Listeners) -> list[Callable[..., Any]]:
    return [
        Provisioning(ports).provision_controller,
        Starting(ports, listeners).start_node,
        Starting(ports, listeners).fail_over,
        Leaving(ports, listeners).leave_kraft,
        Wiping(ports).wipe_kraft,
    ]


ZK_TO_KRAFT_AT_WORK = ActivityKind(
    kind=ZK_TO_KRAFT,
    probe=with_suspects,
    needs_survey=is_survey_needed,
    assess=assess,
    ensure_allowed=ensure_allowed_by,
    sight=sight_of,
    survey=with_survey,
    plan=plan_of,
    why_not_rehearsed=why_not_rehearsed,
    preview=preview,
    runbook=runbook,
    rolls=ROLLS,
    diagnosis=ZK_TO_KRAFT_DIAGNOSIS,
    lookups=migration_lookups,
    checks={
        CheckName.METADATA: compare_metadata,
        CheckName.BEFORE_COPY: keep_metadata,
        CheckName.COPY: compare_copy,
        CheckName.END: compare_metadata,
    },
    effects=_effects,
    bounded_grace=longest_window(ZkToKraftPolicy()),
)
