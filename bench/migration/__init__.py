"""What a migration costs beside the restarts that it makes. One command: `make bench-migration`.

bare       a script that follows Kafka's guide, with the checks that a careful operator makes between nodes
ours       the same cluster, led by Keeperless through its API, with all checks on
scene      the cluster that either of them gets: new, seeded, under load
stretches  seconds by phase and by step, from what each contender tells
processor  processor seconds by class of process, from /proc
compare    the command: contenders in turns, the table, the result as JSON
"""
