"""The ledger: what people ask for later. Tables, queries and the schema's versions, on SQLite and on PostgreSQL.

columns    what the two databases do differently with times and JSON, settled once
tables     the tables
schema     brings a database to the newest version
database   transactions with a time limit
refusals   the translation of the database's errors; `fixes`: what cures them
clusters   migrations   commands   reports   plans   chain      queries, each on one open connection
ledger     `SqlLedger`: all of it, one transaction for each call
"""
