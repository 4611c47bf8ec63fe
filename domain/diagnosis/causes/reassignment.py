"""Replicas that are moved, or kept from it by a throttle: how that is ended, and who begins it again."""

WHO_BEGINS_IT = (
    " Where it comes again, somebody begins it: Cruise Control (topics __CruiseControlMetrics and "
    "__KafkaCruiseControlPartitionMetricSamples say that it is there; POST /kafkacruisecontrol/stop_proposal_execution ends "
    "what it is at, POST /kafkacruisecontrol/admin?disable_self_healing_for=… its self-healing), an operator, a script. Pause "
    "it until finalize."
)
CANCEL_REASSIGNMENT = (
    "Let it finish, or cancel it (kafka-reassign-partitions.sh --cancel). One that does not end has a broker that is gone, or "
    f"a throttle.{WHO_BEGINS_IT}"
)
UNTHROTTLE = (
    "Remove the throttle, or raise it: kafka-configs.sh --alter --entity-type brokers --entity-name ID --delete-config "
    "leader.replication.throttled.rate,follower.replication.throttled.rate (--entity-default for <default>). Where a "
    f"reassignment set it, kafka-reassign-partitions.sh --verify removes it once that has ended.{WHO_BEGINS_IT}"
)
