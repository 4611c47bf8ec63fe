"""What is wrong with a specification that a type does not say."""

from collections import Counter
from collections.abc import Iterator
from urllib.parse import urlsplit

from pydantic import ValidationError

from api.answers.problems import FieldError, invalid_request
from domain.cluster import ClusterSpec, NodeSpec
from domain.connect_string import A_PORT, MOST_PORTS
from domain.kinds import Kind
from domain.of_kind import Wanted


def spec_errors(spec: ClusterSpec, present: ClusterSpec | None) -> list[FieldError]:
    """`present`: the specification that there is, whose nodes may go on sharing an endpoint."""
    return [*_shared_endpoints(spec, present), *_impossible_ports(spec)]


def ensure_attainable(kind: Kind, spec: ClusterSpec, wanted: Wanted) -> None:
    """Raises a `Problem` where the cluster, as it is registered, cannot become what is wanted."""
    try:
        aimed = kind.aimed(spec, wanted)
    except ValidationError as error:
        raise invalid_request([_error("wanted", str(found["ctx"]["error"])) for found in error.errors()]) from error
    except ValueError as error:
        raise invalid_request([_error("wanted", str(error))]) from error
    if errors := [one for one in spec_errors(aimed, spec) if one not in spec_errors(spec, spec)]:
        raise invalid_request([_error(one.field.replace("quorum", "wanted", 1), one.message) for one in errors])


def _shared_endpoints(spec: ClusterSpec, present: ClusterSpec | None) -> Iterator[FieldError]:
    """Of nodes that would be taken for another one."""
    owners = Counter(node.metrics.url for node in spec.nodes)
    known = Counter(node.metrics.url for node in present.nodes) if present is not None else Counter()
    for field, node in _nodes(spec):
        if owners[node.metrics.url] > max(1, known[node.metrics.url]):
            yield _error(f"{field}.metrics.url", "Another node has the same: give each its own")


def _impossible_ports(spec: ClusterSpec) -> Iterator[FieldError]:
    """Whoever is asked at one would be told of as down."""
    asked = {f"kafka.bootstrap_servers.{place}": [one] for place, one in enumerate(spec.kafka.bootstrap_servers)}
    ports = {field: [_port_in(address) for address in addresses] for field, addresses in asked.items()}
    ports |= {f"{field}.metrics.url": [_port_of(node.metrics.url)] for field, node in _nodes(spec)}
    for field, found in ports.items():
        if not all(1 <= port <= MOST_PORTS for port in found):
            yield _error(field, A_PORT)


def _port_in(address: str) -> int:
    """0: none that there could be."""
    port = address.rpartition(":")[2]
    return int(port) if port.isdecimal() else 0


def _port_of(url: str) -> int:
    """0: none that there could be."""
    try:
        port = urlsplit(url).port
    except ValueError:
        return 0
    return MOST_PORTS if port is None else port  # that of its scheme


def _nodes(spec: ClusterSpec) -> Iterator[tuple[str, NodeSpec]]:
    for kind, nodes in (("brokers", spec.brokers), ("quorum.controllers", spec.controllers)):
        yield from ((f"{kind}.{place}", node) for place, node in enumerate(nodes))


def _error(field: str, message: str) -> FieldError:
    return FieldError(where="body", field=field, message=message)
