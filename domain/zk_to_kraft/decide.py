"""`decide`: the one next thing to do, forward to KRaft or back to ZooKeeper. Pure.

The rules are asked in order; the first that has an answer gives it. Forward (`forward.py`):

     1. a quorum is about to delete what it lacks       → Revert    (an earlier attempt's /migration)
     2. the copy kills its controllers                  → Revert    (the cluster has no controller)
     3. a controller has lost its flag                  → Step      give it back (one election makes it final)
     4. a person holds                                  → Wait      (once the end has begun, after it)
                                                        → Step      finish a node that a step of this migration has stopped
     5. ZooKeeper is long silent, all else is ready     → Gate      finalize-without-return
     6. something decisive did not answer               → Wait      (unknown is never healthy)
     7. a way back stands half-done                     → Step/Wait
     8. a file is not as we left it                     → Wait      (final too early: a broker's)
     9. a node that we stopped was not started          → Step      finish its roll
    10. a file is not what its process runs with        → Wait      (edited by hand: what runs decides)
    11. controllers are missing                         → Step      provision all of them, while no broker has been touched
    12. a node is down or not ready                     → Wait
    13. registrations or replicas do not agree          → Wait
    14. the end is there                                → Step/Done remove what canaries left, release what was paused,
                                                                    compare once with what ZooKeeper had
    15. what was paused runs again                      → Wait      (it may write files back)
    16. a file of ours is ahead of its process          → Step      finish that node's roll
    17. clients' ways are to be tried at a broker       → Step      canaries, where the policy asks for them
    18. brokers: ZooKeeper → hybrid → (copy) → KRaft    → Step/Wait
    19. controllers: soak, compare, gate, standbys, leader → Wait/Gate/Step

Back (`way_back.py`):

     1. emergencies of the copy                         → Step      the window
     2. a controller has lost its flag                  → Step      give it back
     3. a person holds                                  → Wait/Step (as forward; not while the cluster has no controller)
     4. something decisive did not answer               → Wait
     5. KRaft brokers without a quorum                  → Step      start the controllers
     6. a file would lose what nobody has accepted      → Wait
     7. KRaft brokers                                   → Step/Wait roll A, to hybrid
     8. the window                                      → Step/Wait KRaft gives way to ZooKeeper
     9. brokers outside ZooKeeper mode                  → Step/Wait roll B
    10. what the quorum left                            → Step      wipe
    11. the end                                         → Step/Done remove what canaries left, release what was paused

Once the quorum's log says that the migration is final there is no way back: then the rules forward are asked, whatever the
intent. What they guarantee: nothing restarts while anything is unknown, down, out of sync or unregistered; a controller
restarts without its flag only when every broker runs in KRaft mode, ZooKeeper and KRaft were compared in this dual write and
say the same (unless ZooKeeper is lost), and a person has approved; whatever was begun is finished
before anything new begins. `tests/unit/test_decide_exhaustive.py` and the model hold it to that.
"""

from collections.abc import Callable, Sequence

from domain.decisions import Decision, Intent, Step
from domain.waits import WaitReason
from domain.zk_to_kraft import forward, way_back
from domain.zk_to_kraft.conditions import Terms
from domain.zk_to_kraft.guards import wait
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.situation import QuorumState, Situation

Rule = Callable[[Situation, Terms], Decision | None]


def decide(situation: Situation, terms: Terms) -> Decision:
    """The next thing to do. Total: every situation has an answer, and waiting is the answer to all that is not understood."""
    is_back_open = terms.intent is Intent.REVERT and situation.quorum is not QuorumState.POST_MIGRATION
    rules = way_back.RULES if is_back_open else forward.RULES
    for rule in rules:
        decision = rule(situation, terms)
        if decision is not None and rule in {forward.held, way_back.held}:
            return _finishing(situation, terms, rules[rules.index(rule) + 1 :]) or decision
        if decision is not None:
            return decision
    return wait(WaitReason.STATE_NOT_UNDERSTOOD)


def _finishing(situation: Situation, terms: Terms, rules: Sequence[Rule]) -> Step | None:
    """The node in hand, as a hold promises: one that a step of ours has stopped, and an error has left so.

    Who was told to begin held, and has done nothing so far, starts nobody.
    """
    stopped = [node.id for node in situation.nodes if node.mode in {BrokerMode.INTERRUPTED, ControllerMode.INTERRUPTED}]
    if not stopped or not terms.has_begun:
        return None
    decision = next((found for rule in rules if (found := rule(situation, terms)) is not None), None)
    return decision if isinstance(decision, Step) and decision.node_id in stopped else None
