"""Connect strings as ZooKeeper's own client reads them. Values: `ConnectStringParser` of ZooKeeper 3.8.4, run on each."""

import re

import pytest
from kazoo.hosts import collect_hosts

from domain.connect_string import read, unmistakable

READ: dict[str, tuple[list[tuple[str, int]], str]] = {
    "z1:2181": ([("z1", 2181)], ""),
    "z1:2181,z2:2181/kafka": ([("z1", 2181), ("z2", 2181)], "/kafka"),
    "z1:2181/kafka,z2:2181/kafka,z3:2181/kafka": ([("z1", 2181)], "/kafka,z2:2181/kafka,z3:2181/kafka"),
    "z3:2181, z1:2181 ,z2:2181/kafka": ([("z3", 2181), ("z1", 2181), ("z2", 2181)], "/kafka"),
    "z1:2181\t,\tz2:2181": ([("z1", 2181), ("z2", 2181)], ""),
    "z1:2181,z2:2181/": ([("z1", 2181), ("z2", 2181)], ""),
    "z1:2181,": ([("z1", 2181)], ""),
    "z1:2181,,z2:2181": ([("z1", 2181), ("z2", 2181)], ""),
    ",z1:2181": ([("z1", 2181)], ""),
    "z1": ([("z1", 2181)], ""),
    "z1:": ([("z1", 2181)], ""),
    "z1,z2/kafka": ([("z1", 2181), ("z2", 2181)], "/kafka"),
    "z1:0": ([("z1", 0)], ""),
    "z1:65535": ([("z1", 65535)], ""),
    "z1:+2181": ([("z1", 2181)], ""),
    ":2181": ([("", 2181)], ""),
    "z1:2181;z2:2181/kafka": ([("z1:2181;z2", 2181)], "/kafka"),
    "z1 :2181": ([("z1 ", 2181)], ""),
    "z1:2181 /kafka": ([("z1", 2181)], "/kafka"),
    "z1:2181/ kafka": ([("z1", 2181)], "/ kafka"),
    "z1:2181/.a/..b": ([("z1", 2181)], "/.a/..b"),
    "z1:2181/kafka:x": ([("z1", 2181)], "/kafka:x"),
    "user@z1:2181": ([("user@z1", 2181)], ""),
    "[2001:db8::1]:2181,z2:2181/k": ([("2001:db8::1", 2181), ("z2", 2181)], "/k"),
    "[2001:db8::1]": ([("2001:db8::1", 2181)], ""),
    "[fe80::1%eth0]:2181": ([("fe80::1%eth0", 2181)], ""),
    "[z1]:2181": ([("z1", 2181)], ""),
    "2001:db8::1:2181": ([("2001:db8::1", 2181)], ""),
    "2001:db8::1": ([("2001:db8:", 1)], ""),
    "z1:2181:2182": ([("z1:2181", 2182)], ""),
}

REFUSED = {
    "z1:2181,z2:2181/kafka/": "ends with /: '/kafka/'. Write z1:2181,z2:2181/kafka.",
    "z1:2181//": "ends with /: '//'. Write z1:2181.",
    "z1:2181//a": "empty name: '//a'. Write z1:2181/a.",
    "z1:2181/a//b": "empty name: '/a//b'. Write z1:2181/a/b.",
    "z1:2181/a/../b": "refuses . and .. in a chroot",
    "z1:2181/a/./b": "refuses . and .. in a chroot",
    "z1:2181/..": "refuses . and .. in a chroot",
    "z1:2181/a/.": "refuses . and .. in a chroot",
    "z1:2181/kaf\tka": "the character '\\t' in a chroot",
    "z1:2181/k\ufffd": "the character '\\ufffd' in a chroot",
    "z1:99999": "the port 99999 of z1:99999",
    "z1:-1": "the port -1 of z1:-1",
    "z1:abc": "the port 'abc' of z1:abc",
    "z1: 2181": "the port ' 2181' of z1: 2181. Write host:port, e.g. z1:2181.",
    "[::1:2181": "refuses [::1:2181",
    "[::1]2181": "refuses [::1]2181",
    "[::1]:": "refuses [::1]:",
    "[]:2181": "refuses []:2181",
    "zk://z1:2181": "empty name: '//z1:2181'",
}

WITHOUT_SERVER = ("", ",", "/kafka", ",/kafka")
"""The parser takes these; `StaticHostProvider` then refuses an empty list."""


@pytest.mark.parametrize("text", READ)
def test_it_is_read_as_zookeeper_reads_it(text: str) -> None:
    found = read(text)
    assert (list(found.servers), found.chroot) == READ[text]


@pytest.mark.parametrize("text", [*REFUSED, *WITHOUT_SERVER])
def test_what_zookeeper_refuses_names_the_rule(text: str) -> None:
    with pytest.raises(ValueError, match="ZooKeeper refuses") as refused:
        read(text)
    assert REFUSED.get(text, "without a server") in str(refused.value)


MISREAD = {
    "z1:2181/kafka,z2:2181/kafka": "Write the chroot once, after the last server: z1:2181,z2:2181/kafka.",
    "z1:2181/kafka,z2:2181": "Write the chroot once, after the last server: z1:2181,z2:2181/kafka.",
    "z1:2181/kafka;z2:2181/kafka": "Write the chroot once, after the last server: z1:2181,z2:2181/kafka.",
    "z1:2181/a,z2:2181/b": "Write the chroot once, after the last server.",
    "z1:2181/kafka:x": "Write the chroot once, after the last server.",
    "z1:2181;z2:2181/kafka": "separates servers by commas alone, so 'z1:2181;z2' would be one host name. "
    "Write z1:2181,z2:2181/kafka.",
    "z1:2181 z2:2181": "Write z1:2181,z2:2181.",
    "z1 :2181": "Write z1:2181.",
    "z1:2181/a b": "a blank in the chroot as part of its name: '/a b'",
    "2001:db8::1:2181": "so '2001:db8::1' would be the host, and 2181 the port. Write host:port, and an IPv6 address in",
    "2001:db8::1": "so '2001:db8:' would be the host, and 1 the port",
    "::1]:2181": "so '::1]' would be the host",
    "z1,z2:2181/kafka": "z1 has no port, so ZooKeeper takes 2181. Write the port of each server: z1:2181,z2:2181/kafka.",
    "[::1]": "[::1] has no port",
    "z1:": "z1: has no port",
    "z$1:2181": "'z$1' is no host name",
    ":2181": "'' is no host name",
    "z1:0": "Nothing listens at port 0. Expected a port from 1 to 65535",
}


@pytest.mark.parametrize("text", MISREAD)
def test_what_nobody_means_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(MISREAD[text])):
        unmistakable(text)


@pytest.mark.parametrize("text", ["admin:sesame@z1:2181", "zk://admin:sesame@z1:2181/kafka", "z1:2181/kafka,x:sesame@z2:2181"])
def test_nothing_is_quoted_of_what_may_hold_a_password(text: str) -> None:
    with pytest.raises(ValueError, match="knows no user") as refused:
        unmistakable(text)
    assert "sesame" not in str(refused.value)


CLEAN = {
    "z3:2181, z1:2181 ,z2:2181/kafka": "z3:2181,z1:2181,z2:2181/kafka",
    " z1:2181,z2:2181/ ": "z1:2181,z2:2181",
    "z1:2181,,z2:2181,": "z1:2181,z2:2181",
    "[2001:db8::1]:2181,z2:2181/k": "[2001:db8::1]:2181,z2:2181/k",
    "[z1]:2181": "z1:2181",
}


@pytest.mark.parametrize("text", CLEAN)
def test_other_clients_get_it_as_they_read_it_too(text: str) -> None:
    """kazoo stumbles over a blank before a comma, and over brackets around a name."""
    found = unmistakable(text)
    assert str(found) == CLEAN[text]
    assert read(str(found)) == found
    hosts, chroot = collect_hosts(str(found))
    assert ([host[:2] for host in hosts], chroot or "") == (list(found.servers), found.chroot)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("z1:2181,z2:2181,z3:2181", "z3:2181,z1:2181,z2:2181/", True),
        ("Z1:2181", "z1", True),
        ("[2001:db8::1]:2181", "[2001:DB8:0::1]:2181", True),
        ("2001:db8::1:2181", "[2001:db8::1]:2181", True),
        ("z1.example.com:2181,z2:2181", "z1:2181,z2:2181", False),
        ("z1:2181", "z1:2182", False),
    ],
)
def test_strings_are_compared_by_meaning(one: str, other: str, is_same: bool) -> None:
    assert (read(one).ensemble == read(other).ensemble) is is_same
