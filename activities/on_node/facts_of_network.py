"""Firewall, routes, queues, links, and programs of the kernel that judge packets. A part of note_machine."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import struct

from activities.on_node.commands import run
from activities.on_node.kernel import Found, Pairs, names, text

PASSING_LINKS = re.compile(r"veth|br-|docker|cali|cni|tap|virbr|lxc|flannel|vnet|tunl|ifb")
PASSING_ROUTES = re.compile(r"proto (bird|bgp|zebra|ra|ospf|isis|babel)\b|temporary")
PASSING_RULES = re.compile(r"DOCKER|KUBE|CNI|f2b|cali-|elements =")
BPF_CALL = {"x86_64": 321, "aarch64": 280}
"""Number of bpf(2)."""
JUDGED = {
    0: "for packets that come in",
    1: "for packets that go out",
    2: "for each new socket",
    8: "for each port that is taken",
    9: "for each port that is taken (IPv6)",
    10: "for each connection that is begun",
    11: "for each connection that is begun (IPv6)",
}
"""By kind of program (enum bpf_attach_type of linux/bpf.h): BPF_CGROUP_INET_INGRESS and EGRESS, INET_SOCK_CREATE, INET4_BIND
and INET6_BIND, INET4_CONNECT and INET6_CONNECT. One that says no gives EPERM, and no packet is sent."""
BY_HAND = ", set by hand"
"""Of an entry that no answer of a card's ever changes; `domain.diagnosis.machines.notes` looks for it."""
COUNTED = re.compile(r"\[\d+:\d+\]")
"""Packets and bytes, as iptables-save prints them."""


def firewall() -> Found:
    """Each rule with the chain that it is in. A kernel without nf_tables has no rule there, and is not made to load it."""
    modules = text("/proc/modules")
    if modules and "nf_tables" not in modules:
        return iptables()
    told = run("nft", "-s", "list", "ruleset")
    if told is None:
        return iptables()
    found: dict[str, str] = {}
    inside: list[str] = []
    for line in told.splitlines():
        words = re.sub(r' comment "[^"]*"', "", line.strip())
        if words.endswith("{") and "=" not in words:
            inside.append(words[:-1].strip())
        elif words == "}":
            inside = inside[:-1]
        elif words:
            found[f"{' / '.join(inside)}: {words}"] = "there"
    return {name: value for name, value in found.items() if not PASSING_RULES.search(name)}


def iptables() -> Found:
    found: dict[str, str] = {}
    told = {program: run(f"{program}-save") for program in ("iptables", "ip6tables")}
    for program, lines in told.items():
        table = ""
        for line in (lines or "").splitlines():
            table = line[1:] if line.startswith("*") else table
            if line[:1] not in {"#", "*"} and line != "COMMIT" and not PASSING_RULES.search(line):
                rule = re.sub(r' --comment ("[^"]*"|\S+)', "", COUNTED.sub("", line)).strip()
                found[f"{program} {table}: {rule}"] = "there"
    return None if told["iptables"] is None else found


def told_by(*command: str) -> Found:
    """Each line without what changes by itself; `None` where there is no such program, or it does not say."""
    told = run(*command)
    lines = (re.sub(r"(valid_lft|preferred_lft|expires|refcnt|age) \S+|\\", "", line) for line in (told or "").splitlines())
    kept = (" ".join(line.split()) for line in lines if not PASSING_LINKS.search(line) and not PASSING_ROUTES.search(line))
    return None if told is None else dict.fromkeys(kept, "there")


def routes() -> Found:
    four, six = told_by("ip", "route", "show"), told_by("ip", "-6", "route", "show")
    return None if four is None or six is None else {**four, **six}


def neighbours() -> Found:
    """Which network card answers for an address, by its hardware address: ARP, and its like of IPv6."""
    told = run("ip", "neigh", "show")
    lines = [line.split() for line in (told or "").splitlines() if not PASSING_LINKS.search(line)]
    known = [(fields, fields[fields.index("lladdr") + 1]) for fields in lines if "lladdr" in fields[:-1]]
    found = {" ".join(fields[:3]): card + (BY_HAND if "PERMANENT" in fields else "") for fields, card in known}
    return found if told is not None else None


def filters() -> Found:
    """Of packets: they may drop some, or send them elsewhere (tc-filter)."""
    found: dict[str, str] = {}
    for name in [name for name in names("/sys/class/net") if not PASSING_LINKS.match(name)][:8]:
        for side in ("root", "ingress", "egress"):
            told = run("tc", "filter", "show", "dev", name, side)
            if told is None:
                return None
            found.update({f"{name} ({side}): {' '.join(line.split())}": "there" for line in told.splitlines()})
    return found


def packet_programs(process: str) -> Found:
    """eBPF programs that judge packets and connections of its control group, or of one above (bpf(2)): systemd's
    IPAddressDeny=, a network plug-in's, a security agent's. No firewall shows them. `None` where the kernel does not let itself
    be asked."""
    group = next((line[3:] for line in (text(f"{process}/cgroup") or "").splitlines() if line.startswith("0::")), None)
    tables = (line.split() for line in (text("/proc/mounts") or "").splitlines())
    root = next((fields[1] for fields in tables if fields[2] == "cgroup2"), None)
    if group is None or root is None or platform.machine() not in BPF_CALL:
        return None
    handle = os.open(root + group, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return {f"{program_name(i)} {what}": "there" for kind, what in JUDGED.items() for i in programs_at(handle, kind)}
    finally:
        os.close(handle)


def programs_at(handle: int, kind: int) -> list[int]:
    """Ids, those of the groups above as well (BPF_PROG_QUERY). A kernel that does not know the kind has none of it."""
    ids = (ctypes.c_uint32 * 64)()
    try:
        answer = bpf(16, struct.pack("=IIIIQI", handle, kind, 1, 0, ctypes.addressof(ids), len(ids)))
    except OSError as error:
        if error.errno == errno.EINVAL:
            return []
        raise
    return list(ids[: struct.unpack_from("=I", answer, 24)[0]])


def program_name(program: int) -> str:
    """As its maker has called it (BPF_PROG_GET_FD_BY_ID, BPF_OBJ_GET_INFO_BY_FD)."""
    handle = ctypes.c_int32(0)
    info = ctypes.create_string_buffer(232)
    bpf(13, struct.pack("=III", program, 0, 0), handle)
    try:
        bpf(15, struct.pack("=IIQ", handle.value, len(info), ctypes.addressof(info)))
    finally:
        os.close(handle.value)
    return info.raw[64:80].partition(b"\0")[0].decode(errors="replace") or str(program)


def bpf(command: int, attributes: bytes, result: ctypes.c_int32 | None = None) -> bytes:
    """Raises `OSError`."""
    library, given = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    told = library.syscall(BPF_CALL[platform.machine()], command, given, 128)
    if told < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if result is not None:
        result.value = told
    return given.raw


def links() -> Pairs:
    for name in names("/sys/class/net"):
        for what in ("mtu", "operstate", "carrier", "speed", "duplex", "flags", "tx_queue_len", "address"):
            value = text(f"/sys/class/net/{name}/{what}")
            if value is not None and not PASSING_LINKS.match(name):
                yield f"{name}: {what}", value.strip()
