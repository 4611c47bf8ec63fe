"""Brokers to whose listener something says what no client of Kafka's does: a header of the PROXY protocol. Pure.

A balancer in front of a broker puts it before every new connection, once somebody has switched that on. Kafka takes its first
four bytes for the size of a request, and closes the connection; what was open before goes on, and a knock finds all well.
"""

from collections.abc import Sequence

from domain.diagnosis.logs.catalogue import KAFKA
from domain.diagnosis.logs.lines import all_found, lately
from domain.zk_to_kraft.causes.case import Looked

PROXY_HEADER = KAFKA["proxy-header"]
"""By the first four bytes of such a header, of version 2 and of version 1, as a number (InvalidReceiveException)."""


def of_proxy_header(looked: Looked, broker_ids: Sequence[int]) -> tuple[str, str, str] | None:
    """Of the first of them to which it happens: its name, what is seen, and the fix."""
    for broker_id in broker_ids:
        if any(all_found(lately(looked.hints.logs.get(broker_id, ())), (PROXY_HEADER,))):
            name = looked.broker_name(broker_id)
            return (
                name,
                f"new connections to {name} do not begin with Kafka's protocol but with a header of the PROXY protocol, by the "
                "size that its log tells (InvalidReceiveException), and it closes them",
                PROXY_HEADER.fix,
            )
    return None
