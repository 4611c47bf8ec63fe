"""How fast the consistency checks are, beside other ways to the same answer. One command: `make bench`.

raw, segments     inputs, byte for byte as Kafka and ZooKeeper write them, with what is to be found in them
contenders/       who is measured, each in a process of its own (`contender`)
measuring         one round of one contender: seconds, processor time, memory
compare           the command: rounds in turns, results held against what is to be found
packages          DuckDB, Polars and datacompy, which nothing else here needs
"""
