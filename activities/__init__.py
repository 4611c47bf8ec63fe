"""What is done to a cluster: thin, idempotent, heartbeating. Depends on `ports` only; `worker` wires the adapters."""
