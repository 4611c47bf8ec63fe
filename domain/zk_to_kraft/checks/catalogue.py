"""All checks, in the order of their codes, which are stable. The page docs/checks.md is made from here."""

from domain.zk_to_kraft.checks import (
    brokers,
    canaries,
    configuration,
    controllers,
    coordinators,
    ensemble,
    file_owners,
    identity,
    java,
    listeners,
    outliving,
    own_process,
    security,
    unapplied,
    zookeeper_content,
)
from domain.zk_to_kraft.checks.seen import Check

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
