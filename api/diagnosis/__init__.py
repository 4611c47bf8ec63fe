"""Why a migration waits, as far as Temporal and the ledger know it."""
