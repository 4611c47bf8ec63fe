"""The HTTP door. `docs/` and API.md say what it promises; nothing here decides about a cluster.

settings   what an operator may set
problems   every error that a caller can get, and how ours become one
requests   answers   report_answers   plan_answers   what goes in and out, as models
temporal   the connection to Temporal, with time limits and errors of our own
runs       a migration's run in Temporal: start it, find who holds a cluster
starting   `POST /migrations`, whatever crashed in between
commands   what people ask a running migration for: delivered in order, and until it has arrived
observing  one look at a cluster, by a worker
runbook_page   plan_page   the way by hand, and a plan, as pages
checking   planning   a check, a plan that a person asks for
standing   where something stands that was asked for, and that nobody waits for
findings   pages through the rows of a report
negotiation   in which form a caller likes it
caretaker  what has to be tried again and again: schema, commands, abandoned migrations, audit
audit      edge            every call: who, from where, with which outcome
description   openapi      the contract as a document
links      wiring   app   server   routes/
"""
