"""A throw-away Kafka, ZooKeeper and Temporal on this machine: the demo, and what tests use.

    jars, java            what runs: fetched once into the user's cache, verified
    processes, ports      how it runs: detached, known by pid files, stopped for certain
    ensemble, brokers     three ZooKeeper servers; brokers in ZooKeeper mode
    cluster               both together, described by a ClusterSpec
    seed, load            what a real cluster holds, and the writes that must not be lost
    temporal              Temporal's dev server with its web UI

No product package imports this one.
"""
