"""A rehearsal of Kafka's copy: the activity, and what runs in its room, a namespace of its own with a throw-away ZooKeeper, a
controller and stand-in brokers.

`program` is started by `activities.adapters.rehearsal_room` and speaks with `activities.rehearsal.rehearsing` by lines of JSON.
"""
