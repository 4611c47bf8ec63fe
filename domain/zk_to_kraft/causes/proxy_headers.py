"""Brokers to whose listener something says what no client of Kafka's does: a header of the PROXY protocol. Pure.

A balancer in front of a broker puts it before every new connection, once somebody has switched that on. Kafka takes its first
four bytes for the size of a request, and closes the connection; what was open before goes on, and a knock finds all well.
"""

import re
from collections.abc import Sequence

from domain.diagnosis.logs.lines import Told, all_found, lately
from domain.zk_to_kraft.causes.case import Looked

PROXY_HEADER = Told(
    "proxy-header",
    re.compile(r"Invalid receive \(size ?= ?(?:218762506|1347571544)\b"),
    "connections that begin with Kafka's own protocol",
    "Something between clients and that broker (a load balancer, HAProxy, a service mesh) has begun to send headers of the "
    "PROXY protocol, which Kafka does not speak: switch that off there (`send-proxy`, `send-proxy-v2` of HAProxy's server "
    "line; proxy_protocol_v2.enabled of a target group). Connections that were open before go on, so that brokers lose each "
    "other one by one. Do not restart a broker: that breaks those as well.",
)
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
