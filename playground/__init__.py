"""A throw-away Kafka, ZooKeeper and Temporal on this machine: the demo, and what tests use.

    cache, jars, java     what runs: fetched once into the user's cache, verified
    jvm, shared_classes   its command line, and an archive of classes that halves the time of a start
    processes, ports      how it runs: detached, known by pid files, stopped for certain
    ensemble, brokers     three ZooKeeper servers; brokers in ZooKeeper mode
    cluster               both together, described by a ClusterSpec
    seed, load            what a real cluster holds, and the writes that must not be lost
    example               the committed ClusterSpec
    temporal              Temporal's dev server with its web UI

No product package imports this one.
"""
