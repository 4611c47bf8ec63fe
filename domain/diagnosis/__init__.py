"""Why a migration waits or a node does not serve: what logs and machines say, and the causes that follow."""
