"""PF41, PF42: what is made to try clients' ways can be made and removed again, and nothing of it is there."""

from collections.abc import Iterator
from itertools import islice

from domain.by_hand.canary_leftovers import removals
from domain.canaries import PREFIX, WHAT_TO_DO, Canary
from domain.checks.check import MOST_OBJECTS, Check, Surveyed, of_zookeeper, unverifiable
from domain.decisions import Finding, Severity
from domain.observed.survey import ZooKeeperSurvey

OBJECT, EXPECTED = f"{PREFIX}*", "the objects that the policy creates as canaries can be created and deleted"
FIX = f"{WHAT_TO_DO[Canary.REMOVAL]} Or use neither canaries nor max_client_pause."


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
            observed="left over from an earlier migration",
            expected=f"no object has a name that begins with {PREFIX}",
            fix=f"Remove it: {command}",
        )


CHECKS = (
    Check(
        code="PF41",
        holds="if the policy has `canaries` or `max_client_pause`, the objects that they need can be created and deleted",
        because="objects that cannot be deleted would remain, and a broker whose canary cannot run makes the migration wait",
        source="`delete.topic.enable` of every broker; requests about a reserved name that does not exist, which change "
        "nothing",
        unverifiable="Kafka does not let the configured client ask",
        of_survey=(_refused,),
    ),
    Check(
        code="PF42",
        holds=f"no topic, ACL or user has the reserved prefix `{PREFIX}`",
        because="an earlier migration could not delete it. The finding has the command that does",
        source="`/brokers/topics`, `/kafka-acl/Group`, `/config/users`",
        severity=Severity.WARNING,
        unverifiable="ZooKeeper does not let the configured identity read",
        of_survey=(of_zookeeper("PF42", _left, Severity.WARNING),),
    ),
)
