"""What the active controller says of the migration (KRaftMigrationDriver of Kafka 3.9): `log_patterns/migration.toml`."""

import re

from domain.diagnosis.logs.catalogue import read

MIGRATION = read("domain.zk_to_kraft")
WAITING_FOR_BROKERS, NO_BROKERS_KNOWN = MIGRATION["waiting-for-brokers"], MIGRATION["no-brokers-known"]
CONTROLLER_WITHOUT_FLAG = MIGRATION["controller-without-flag"]
WRITE_REFUSED, WRITE_FAILED = MIGRATION["zookeeper-write-refused"], MIGRATION["zookeeper-write-failed"]
UNHANDLED, CHECK_OP_FAILED = MIGRATION["migration-error"], MIGRATION["check-op-failed"]
UNKNOWN_CONFIG, CLAIM_REFUSED = MIGRATION["unknown-config-resource"], MIGRATION["claim-refused"]
STEP_OF_MIGRATION = re.compile(MIGRATION.snippets["step_of_migration"])
"""Of the migration driver: what has failed before that is over, and was written by what it did at that step."""
OUT_OF_PLACE, SUPERSET = MIGRATION["migration-without-claim"], MIGRATION["image-lacks-metadata"]
