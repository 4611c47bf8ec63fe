"""What `partition_epochs` knows, in the words of a shell: versions of partitions' states that are too small."""

from collections.abc import Sequence
from shlex import quote

from domain.by_hand.kafka_tools import decoder, in_one_session
from domain.cluster import ClusterSpec, ControllerSpec

_EPOCHS = """
function value_of(name, value) {
  value = $0
  if (!sub(".*\\"" name "\\":\\"?", "", value)) return ""
  sub(/[",}].*/, "", value)
  return value
}
function partition() { return value_of("topicId") " " value_of("partitionId") }
/^begin / {
  is_checkpoint = /[.]checkpoint$/
  name = $0
  sub(/.*[/]/, "", name)
  if (is_checkpoint) end = substr(name, 1, 20) + 0
  next
}
!/payload:/ { next }
{
  at = $0
  sub(/.*[|] offset: /, "", at)
  if (!is_checkpoint && at + 0 < end) next
  seen = 1
}
/"type":"TOPIC_RECORD"/ { topic[value_of("topicId")] = value_of("name") }
/"type":"REMOVE_TOPIC_RECORD"/ { delete topic[value_of("topicId")] }
/"type":"PARTITION_RECORD"/ { epoch[partition()] = value_of("partitionEpoch") }
/"type":"PARTITION_CHANGE_RECORD"/ {
  if (!(partition() in epoch)) is_torn = 1
  epoch[partition()]++
}
END {
  for (key in epoch) {
    split(key, part, " ")
    if (part[1] in topic) print "/brokers/topics/" topic[part[1]] "/partitions/" part[2] "/state", epoch[key] + 0
  }
  exit is_torn || !seen
}
"""
"""From a newest checkpoint and a log, each after a line that begins it, to lines of a state's path and its partition epoch."""

_CHANGES = """
!NF { is_read = 1; next }
!is_read { path[++count] = $1; epoch[count] = $2; next }
/leader_epoch/ { data = $0; sub(/^[^{]*/, "", data); next }
{
  at++
  for (version = $NF + 0; version < epoch[at]; version++)
    printf "set -v %d %s \\047%s\\047\\n", version, path[at], data
}
END { exit at != count }
"""
"""From those lines, an empty one, and each state's data and version in the same order, to commands of ZooKeeper's shell."""


def lagging_states(spec: ClusterSpec, controller: ControllerSpec, directories: Sequence[str]) -> str:
    """Prints commands of ZooKeeper's shell, one a line, after which brokers obey a ZooKeeper controller everywhere.

    The version of a partition's state must not be smaller than its epoch in the quorum's log: the very same data is set until
    it is not. Fails where it could not read all.
    """
    folders = " ".join(quote(f"{path}/__cluster_metadata-0") for path in directories)
    files = '"$(ls "$folder"/*.checkpoint 2>/dev/null | tail -n 1)" "$folder"/*.log'
    one = f'[ ! -e "$log" ] || {{ echo "begin $log"; {decoder(controller)} "$log"; }}'
    each = f"for folder in {folders}; do for log in {files}; do {one}; done; done 2>/dev/null"
    epochs = f"epochs=$({each} | awk {quote(_EPOCHS)})"
    gets = "gets=$(echo \"$epochs\" | sed 's/ .*//; s/^/get -s /')"
    states = f"states=$({in_one_session(spec, 'gets')} | grep -e leader_epoch -e '^dataVersion = ')"
    told = f'{gets} && {states} && {{ echo "$epochs"; echo; echo "$states"; }} | awk {quote(_CHANGES)}'
    return f'{epochs} && {{ [ -z "$epochs" ] || {{ {told}; }}; }}'
