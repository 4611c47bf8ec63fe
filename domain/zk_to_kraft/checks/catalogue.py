"""All checks, in the order of their codes, which are stable. The page docs/checks.md is made from here."""

from domain.checks import brokers, canaries, ensemble, file_owners, java, own_process
from domain.checks import coordinator_counts as coordinators
from domain.checks import service_unit as outliving
from domain.checks.check import Check
from domain.zk_to_kraft.checks import configuration, controllers, identity, listeners, security, unapplied, zookeeper_content
from domain.zk_to_kraft.rehearsal.outcome import CODES

MODULES = (
    identity,
    controllers,
    ensemble,
    zookeeper_content,
    brokers,
    listeners,
    security,
    configuration,
    canaries,
    java,
    outliving,
    unapplied,
    coordinators,
    own_process,
    file_owners,
)

CATALOGUE: tuple[Check, ...] = tuple(sorted((c for module in MODULES for c in module.CHECKS), key=lambda check: check.code))

FINDING_CODES = (*(check.code for check in CATALOGUE), *CODES)
"""Of all findings that a plan or a preflight of this kind can have."""
