"""PF41, PF42: what is made to try clients' ways can be made and removed again, and nothing of it is there."""

from collections.abc import Iterator
from itertools import islice

from domain.by_hand.canary_leftovers import removals
from domain.canaries import PREFIX, WHAT_TO_DO, Canary
from domain.checks.seen import MOST_OBJECTS, Check, Surveyed, of_zookeeper, unverifiable
from domain.decisions import Finding, Severity
from domain.observed.survey import ZooKeeperSurvey

OBJECT, EXPECTED = f"{PREFIX}*", "what the policy has made can be made, and removed again"
FIX = f"{WHAT_TO_DO[Canary.REMOVAL]} Or start it with neither canaries nor max_client_pause."


def _refused(seen: Surveyed) -> Iterator[Finding]:
    refused = seen.survey.refused_canaries
    if refused is None:
        yield unverifiable("PF41", OBJECT, seen.survey.why_missing("canaries"), EXPECTED, FIX)
    for why in refused or ():
        yield Finding(code="PF41", object=OBJECT, observed=why, expected=EXPECTED, fix=FIX)


def _left(seen: Surveyed, tree: ZooKeeperSurvey) -> Iterator[Finding]:
    for what, command in islice(removals(tree.left, seen.spec), MOST_OBJECTS):
        yield Finding(
            code="PF42",
            severity=Severity.WARNING,
            object=what,
            observed="left by a migration that is gone",
            expected=f"nothing has a name of {PREFIX}*",
            fix=f"Remove it: {command}",
        )


CHECKS = (
    Check(
        code="PF41",
        holds="where the policy has `canaries` or `max_client_pause`, what they make can be made, and removed again",
        because="what may not be removed would stay, and a broker that cannot be tried holds the migration",
        source="`delete.topic.enable` of every broker; requests about a reserved name that nobody has, which change nothing",
        unverifiable="Kafka does not let us ask",
        of_survey=(_refused,),
    ),
    Check(
        code="PF42",
        holds=f"no topic, ACL or user has the reserved prefix `{PREFIX}`",
        because="a migration that is gone could not remove it. The finding has the command that does",
        source="`/brokers/topics`, `/kafka-acl/Group`, `/config/users`",
        severity=Severity.WARNING,
        unverifiable="ZooKeeper may not be read with our identity",
        of_survey=(of_zookeeper("PF42", _left, Severity.WARNING),),
    ),
)
