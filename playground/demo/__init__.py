"""The main job, for people to watch: `python -m playground.demo [--yes] [--keep]`, which `make demo` calls.

__main__     the command line
guardian     one small process that outlives the demo proper, and leaves no process behind whatever happens to it
leftovers    which processes are the demo's, and how they end
directory    what belongs to the demo on disk
backstage    starts Temporal, our programs, the cluster and its load
story        what happens in which order; from the registration on it speaks HTTP only
door         that HTTP
asking       the gate: what the approver is shown, and asked
witness      reads along, and misses what was acknowledged and cannot be read
board        collects what is known; gives a frozen `DemoState`
state        that state
words        events as lines
view         `DemoState` → what is seen, pure
screen       a live view in a terminal, lines elsewhere
report       the summary and report.json
"""
