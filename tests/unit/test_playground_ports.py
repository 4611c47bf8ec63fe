"""Ports: distinct, free, kept apart from those of other playgrounds."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from domain.errors import Transient
from playground import ports
from playground.ports import CANDIDATES, LOOPBACK, PortLease, is_free


def test_many_at_once_are_distinct_free_and_outside_the_ephemeral_range() -> None:
    with PortLease(200) as lease:
        assert len(set(lease.ports)) == 200
        assert all(port in CANDIDATES and is_free(port) for port in lease.ports)
        assert [lease.take(), lease.take()] == list(lease.ports[:2])


def test_two_leases_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    with PortLease(3) as first:
        monkeypatch.setattr(ports, "CANDIDATES", range(first.ports[0], first.ports[0] + 1))
        with pytest.raises(Transient, match="0 of 1 ports are free"):
            PortLease(1)
    with PortLease(1) as again:
        assert again.ports == first.ports[:1]


def test_another_process_does_not_get_a_leased_port() -> None:
    with PortLease(1) as lease:
        asked = (
            "from playground import ports\n"
            f"ports.CANDIDATES = range({lease.ports[0]}, {lease.ports[0]} + 1)\n"
            "ports.PortLease(1)\n"
        )
        root = Path(__file__).parents[2]
        answer = subprocess.run([sys.executable, "-c", asked], cwd=root, capture_output=True, text=True, check=False)
    assert "0 of 1 ports are free" in answer.stderr


def test_a_port_with_a_listener_is_not_free() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        assert not is_free(server.getsockname()[1])
