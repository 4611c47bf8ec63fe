"""What a runbook does on one node, as commands for a POSIX shell on Linux: its process, its files.

Each command is complete in itself, may be repeated, and quotes every path. None prints the value of a secret: what is secret is
copied from file to file, or asked for as a shell variable.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from shlex import quote

from domain.cluster import NodeSpec
from domain.configuration.properties import edit
from domain.redaction import SECRETIVE_NAME

FENCED = "meta.properties.fenced-by-keeperless"
"""Where the way back puts a log directory's `meta.properties`: KRaft refuses to start without it."""

_LOGICAL_LINES = r"""
  function refuse(why) {
    print FILENAME ", line " first ": " why " Nothing was changed." >"/dev/stderr"; refused = 1; exit 3
  }
  function digit(at) { return index("0123456789abcdef", substr(code, at, 1)) - 1 }
  function key_of(text,   at, c, key, is_value) {
    for (at = 1; at <= length(text); at++) {
      c = substr(text, at, 1)
      if (c == "\\") {
        c = substr(text, ++at, 1)
        if (c == "u") {
          code = tolower(substr(text, at + 1, 4)); at += 4
          if (code !~ /^[0-9a-f][0-9a-f][0-9a-f][0-9a-f]$/)
            refuse("\\u without four hexadecimal digits. Java refuses the whole file for it: correct it, and repeat this.")
          c = code ~ /^00[2-7]/ ? sprintf("%c", 16 * digit(3) + digit(4)) : "?"
        } else if (c ~ /[tnrf]/) c = "?"
      } else if (c ~ /[ \t\f=:]/) is_value = 1
      if (!is_value) key = key c
    }
    return key
  }
  function end_line(is_key,   key) {
    if (is_key) key = key_of(text)
    if (what == "names") out = out (is_key ? key "\n" : "")
    else if ((is_key && (key in named)) == (what == "named")) out = out raw
    raw = text = ""
  }
  BEGIN { n = split(keys, names, " "); for (i = 1; i <= n; i++) named[names[i]] = 1 }
  { if (!more) first = NR
    line = $0; sub(/\r$/, "", line); sub(/^[ \t\f]+/, "", line); raw = raw $0 "\n"
    if (line ~ /\r/) refuse("A carriage return alone ends a line here. Write one key a line with line feeds, and repeat this.")
    if (!more && line ~ /^([#!]|$)/) { end_line(0); next }
    more = match(line, /\\+$/) && RLENGTH % 2
    text = text substr(line, 1, length(line) - more)
    if (!more) end_line(1) }
  END { if (refused) exit 3; if (more) { raw = raw "\n"; end_line(1) } printf "%s", out }
"""
"""awk: print the logical lines of a properties file that set one of `keys` (what=named), all others (what=others), or the keys
of all (what=names).

It reads keys as Java does: a line that ends in an odd number of backslashes goes on with the next, and escapes are resolved. It
prints nothing, and ends with 3, where that cannot be.
"""


def java(node: NodeSpec, *words: str) -> str:
    """A Java tool of the node's own Kafka, run by the node's own Java. `words` are shell words already."""
    home = node.environment.get("JAVA_HOME")
    binary = f"{home}/bin/java" if home else "java"
    return " ".join([quote(binary), "-cp", quote(node.class_path), *words])


def environment(node: NodeSpec) -> str:
    """`NAME=value …`; what looks like a secret is asked for as a variable."""
    return " ".join(
        f'"{name}=${{{name}:?as the process of node {node.id} has it}}"'
        if SECRETIVE_NAME.search(name)
        else quote(f"{name}={value}")
        for name, value in node.environment.items()
    )


def until(condition: str, seconds: int = 60) -> str:
    """Wait for a condition, a while. In a shell of its own: giving up does not end the reader's."""
    return f'(n=0; until {condition}; do n=$((n+1)); [ "$n" -lt {seconds} ] || exit 1; sleep 1; done)'


def stop(node: NodeSpec, signal: str = "TERM") -> str:
    """Signal the node's process, wait until it is gone. A zombie is gone; a recycled pid is not the node's."""
    pid_file, is_it = quote(node.driver.service.pid_file), _is_running(node)
    return f'pid=$(cat {pid_file}); if {is_it}; then kill -{signal} "$pid"; fi; while {is_it}; do sleep 1; done'


def is_gone(node: NodeSpec) -> str:
    return f"pid=$(cat {quote(node.driver.service.pid_file)}); ! {_is_running(node)}"


def is_up(node: NodeSpec) -> str:
    return f"pid=$(cat {quote(node.driver.service.pid_file)}); {_is_running(node)}"


def _is_running(node: NodeSpec) -> str:
    return f'grep -qF -- {quote(node.properties_file)} "/proc/$pid/cmdline" 2>/dev/null'


def start(node: NodeSpec) -> str:
    """Start the node as the product does: a session of its own, its own environment, output appended, pid written.

    Running already is fine.
    """
    service = node.driver.service
    pid_file, output = quote(service.pid_file), quote(service.output_file)
    command = " ".join(quote(part.replace("{properties}", node.properties_file)) for part in service.start_command)
    own = f'env -i PATH="$PATH" HOME="$HOME" {environment(node)}'
    write_pid = quote('echo $$ >"$0"; exec "$@"')
    begin = (
        f'mkdir -p "$(dirname {pid_file})" "$(dirname {output})" && rm -f {pid_file} && cd / && '
        f"{{ {own} setsid sh -c {write_pid} {pid_file} {command} >>{output} 2>&1 </dev/null & }} && "
        f"{until(f'[ -s {pid_file} ]', 10)}"
    )
    return f"pid=$(cat {pid_file} 2>/dev/null); if ! {_is_running(node)}; then {begin}; fi"


def archive(node: NodeSpec, archived: str) -> str:
    """Keep the file as it is, mode and owner too, where the product would: never over an archive that is there."""
    target = quote(archived)
    return (
        f'umask 077; mkdir -p "$(dirname {target})" && {{ [ -e {target} ] || cp -p {quote(node.properties_file)} {target}; }}'
    )


def restore(node: NodeSpec, archived: str) -> str:
    """The archived original's bytes, mode and owner."""
    return f"cp -p {quote(archived)} {quote(node.properties_file)}"


def edit_file(path: str, removed: Iterable[str], assigned: Mapping[str, str], asked: Collection[str] = ()) -> str:
    """Take keys out of a properties file and append others. Comments, order and everything else stay; so do mode and owner.

    `asked`: keys whose values are asked for as variables, besides those whose names are of secrets. A file that it cannot read
    as Java does stays as it is: then the exit code is not 0.
    """
    keys = [*removed, *assigned]
    lines = "".join(_asked(k) if k in asked or SECRETIVE_NAME.search(k) else _line(k, v) for k, v in assigned.items())
    file, new = quote(path), quote(f"{path}.new")
    append = f" && printf '\\n' >>{new} && printf '%s\\n' {lines.strip()} >>{new}" if assigned else ""
    made = f"{{ {_lines(path, 'others', keys)} >{new}{append} || {{ rm -f {new}; false; }}; }}"
    return f"umask 077; {made} && cat {new} >{file} && rm {new}"


def write_file(path: str, text: str) -> str:
    return f"umask 077; mkdir -p \"$(dirname {quote(path)})\" && printf '%s' {quote(text)} >{quote(path)}"


def append_keys(source: str, keys: Iterable[str], target: str) -> str:
    """Append what a file says of these keys to another, unseen."""
    return f"{_lines(source, 'named', keys)} >>{quote(target)}"


def append_others(source: str, keys: Iterable[str], target: str) -> str:
    """Append all that a file says besides these keys to another, unseen: comments too, and lines without a readable key."""
    return f"{_lines(source, 'others', keys)} >>{quote(target)}"


def key_names(path: str) -> str:
    """The keys of a properties file, sorted, without any value."""
    return f"{_lines(path, 'names')} | sort"


def _lines(path: str, what: str, keys: Iterable[str] = ()) -> str:
    """By bytes: a file need not be UTF-8."""
    return f"LC_ALL=C awk -v what={what} -v keys={quote(' '.join(keys))} '{_LOGICAL_LINES}' {quote(path)}"


def _asked(key: str) -> str:
    variable = re.sub(r"\W", "_", key).upper()
    return f'"{key}=${{{variable}:?the value of {key}}}" '


def _line(key: str, value: str) -> str:
    return quote(edit("", {key: value}).rstrip("\n")) + " "
