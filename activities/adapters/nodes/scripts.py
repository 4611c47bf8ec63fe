"""The few lines of POSIX shell that run on the node. Arguments are positional: nothing is quoted into a script."""

START = r"""
pid_file=$1 identity_file=$2 output_file=$3 seen=$4 start_process=$5; shift 5
mkdir -p "$(dirname "$pid_file")" "$(dirname "$output_file")" || exit 1
exec 9>>"$pid_file.lock" || exit 1
flock -w 10 9 || exit 75
now=$(cat "$pid_file" "$identity_file" 2>&-)
[ "$now" = "$seen" ] || exit 0
born=$(setsid sh -c "$start_process" start "$pid_file" "$identity_file" "$output_file" "$@" 2>&1 </dev/null &)
[ "$born" = born ] || { echo "$born" >&2; exit 1; }
"""
"""Start one process. Exit 75: the lock is taken. `$(… &)` waits until the new process has let go of its output.

What nobody wants to read goes to a closed descriptor: where `/dev/null` cannot be written (a program of root's has left a file
there) the command before it would not run, and no start would be needed, as it seems.
"""

START_PROCESS = r"""
pid_file=$1 identity_file=$2 output_file=$3; shift 3
field_22() { shift 19; echo "$1"; }
: >>"$output_file" || exit 1
read -r stat </proc/$$/stat || exit 1
ticks=$(field_22 ${stat##*) })
echo "$$" >"$pid_file.new" && mv -f "$pid_file.new" "$pid_file" || exit 1
echo "$$@$ticks" >"$identity_file.new" && mv -f "$identity_file.new" "$identity_file" || exit 1
(echo born) 2>&-
exec >>"$output_file" 2>&1 9>&-
exec "$@"
"""
"""The new process, in a session of its own: says who it is, then becomes the node. It holds the lock (9) until then.

Its command line names the properties file from its first moment, as one of the arguments. A command that cannot be executed
is a start that died at once: the reason is in the output file. A subshell says `born`: nobody may be listening any more.
"""

SIGNAL = r"""
field_22() { shift 19; echo "$1"; }
read -r stat </proc/$1/stat || exit 3
[ "$(field_22 ${stat##*) })" = "$2" ] || exit 3
kill "-$3" "$1"
"""
"""A signal (`TERM`, `KILL`) for exactly that process. Exit 3: it is gone."""

OUTPUT_TAIL = r"""
[ -e "$1" ] || exit 0
tail -c 262144 -- "$1" | tail -n "$2"
"""
"""The last lines of a file, of its last 256 KiB; nothing if it does not exist."""
