#!/bin/bash
# kazoo reads a ZooKeeper connect string otherwise than ZooKeeper's own client (ConnectStringParser of 3.8.4), which was run on
# the same strings. Seen with kazoo 2.11.0:
#   - a blank before a comma, which ZooKeeper's client drops, is a ValueError;
#   - a chroot that ends with "/", which ZooKeeper's client refuses ("Path must not end with / character"), is taken as it is.
# Exit code 0 while that is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check kazoo==2.11.0
"$folder/venv/bin/python" - <<'PROGRAM'
import kazoo
from kazoo.hosts import collect_hosts

print("kazoo", kazoo.__version__)
try:
    print("changed:", collect_hosts("z3:2181, z1:2181 ,z2:2181/kafka"))
    raise SystemExit(1)
except ValueError as error:
    print("a blank before a comma: ValueError:", error)
hosts, chroot = collect_hosts("z1:2181,z2:2181/kafka/")
print("a chroot that ends with /:", repr(chroot))
raise SystemExit(0 if chroot == "/kafka/" else 1)
PROGRAM
