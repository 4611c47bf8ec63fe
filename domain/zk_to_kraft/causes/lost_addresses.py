"""An address that a machine has had, and has not any more: whoever listens there goes on, and nobody reaches him. Pure."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from domain.cluster import host_of
from domain.zk_to_kraft.causes.case import Looked

LINE = r"address (?:\d+: )?(?P<link>\S+) inet6? (?P<address>[0-9a-f.:]+)/(?P<bits>\d+)\b.*"
GONE, NEW = re.compile(f"{LINE} is gone"), re.compile(f"{LINE} is new")
"""Changes of a machine, as they are told of a line of `ip -o addr`. An address that has moved, or has another flag, is both."""


@dataclass(frozen=True)
class LostAddress:
    """`link`: that it was on."""

    address: str
    bits: str
    link: str

    @property
    def in_words(self) -> str:
        return f"{self.address} is no address of its machine any more: it was on {self.link} when this migration began"

    def fix(self, name: str) -> str:
        """`name`: of whoever listens there."""
        return (
            f"Have it back: `ip addr add {self.address}/{self.bits} dev {self.link}` there, or by what manages it (a lease of "
            "DHCP that has ended, systemd-networkd or NetworkManager that were restarted or upgraded, keepalived). Restart "
            f"nothing: {name} listens there still, and answers as soon as the address is back; started again without it, it "
            "could not bind it."
        )


def lost_address(looked: Looked, addresses: Collection[str]) -> LostAddress | None:
    """The first of these (`host:port`) that a machine has lost since it was noted, and that no other one has got."""
    hosts = {number for at in addresses for number in (host_of(at), *looked.hints.numbers.get(host_of(at), ()))}
    lines = [line for changes in looked.hints.changes.values() for line in changes.changes]
    there = {found["address"] for line in lines if (found := NEW.match(line))}
    gone = (found for line in lines if (found := GONE.match(line)) and found["address"] in hosts - there)
    return next((LostAddress(found["address"], found["bits"], found["link"]) for found in gone), None)
