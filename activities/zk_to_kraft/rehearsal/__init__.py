"""A rehearsal of Kafka's copy: the activity, and what runs in its room, a namespace of its own with a throw-away ZooKeeper, a
controller and stand-in brokers.

`activities.zk_to_kraft.rehearsal.room` starts `program`, which speaks with `rehearsing` by lines of JSON.
"""
