"""Gauges through the Prometheus JMX exporter (1.0.1), from its text format.

The default rules give `kafka_controller_KafkaController_Value{name="ZkMigrationState"} 4.0`; common rule sets give
`kafka_controller_kafkacontroller_zkmigrationstate` or `…_value`, and `kafka_server_raftmetrics_current_leader`. So names are
compared without case, punctuation and a last `value`. Rules must not leave out the gauges in `gauges.GAUGES`: what they
leave out looks absent.

The exporter gives numbers only: `zookeeper_session` and `kafka_version` are always `None` here.
"""

import asyncio
import re
from functools import lru_cache

from activities.adapters.metrics.gauges import GAUGES, RAFT, RAFT_ATTRIBUTES, integer, node_metrics
from activities.adapters.metrics.http import Exchange
from activities.adapters.metrics.page_sizes import MUCH
from domain.cluster import shown
from domain.errors import Obstacle, Transient
from domain.observed.observation import NodeMetrics

METRIC = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{((?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*)\})?")
VALUE = re.compile(r"\s+(\S+)(?:\s+-?\d+)?\s*")
NAME_LABEL = re.compile(r'(?:^|,)\s*name="((?:[^"\\]|\\.)*)"')
LABEL = re.compile(r'\w+="(?:[^"\\]|\\.)*"')
OWN_ID = re.compile(r'^kafka_server_app_?info_starttimems(?:_value)?\{id="(\d+)",?\}', re.IGNORECASE | re.MULTILINE)
SCRAPE_ERROR = "jmxscrapeerror"
"""1 when the exporter could not read the JVM's MBeans: then everything looks absent."""
NAMES_KEPT = 2**16
"""Of what stands before values: all pages of a cluster with some thousand partitions, in 30 MB."""


class PrometheusMetrics:
    """Reads `NodeMetrics`. Not on the page: `None`. No or malformed page, or a failed scrape in the JVM: `Transient`."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def read(self, url: str) -> NodeMetrics:
        page = await self._exchange.text("GET", url)
        samples = _wanted(url, page) if len(page) < MUCH else await asyncio.to_thread(_wanted, url, page)
        if SCRAPE_ERROR not in samples:
            raise Transient(
                f"{shown(url)}: this is not a JMX exporter: jmx_scrape_error is missing", obstacle=Obstacle.ANOTHERS
            )
        if samples[SCRAPE_ERROR] != 0:
            raise Transient(f"{shown(url)}: the exporter could not read the MBeans: its log says why")
        ids = {int(found) for found in OWN_ID.findall(page)}
        return node_metrics(url, {field: samples.get(name) for field, name in WANTED.items()}, ids)


def canonical(name: str) -> str:
    """`kafka_controller_KafkaController_Value` and `kafka.controller:type=KafkaController` alike."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _mbean(object_name: str) -> str:
    return canonical(re.sub(r"\b(type|name)=", "", object_name))


WANTED = {field: _mbean(mbean) for field, mbean in GAUGES.items()} | {
    field: _mbean(RAFT) + canonical(attribute) for field, attribute in RAFT_ATTRIBUTES.items()
}


def _wanted(url: str, page: str) -> dict[str, int]:
    names = {*WANTED.values(), SCRAPE_ERROR}
    found: dict[str, int] = {}
    for line in page.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, value = _sample(url, line)
        if name in names:
            number = integer(_number(url, name, value), url, name)
            if found.setdefault(name, number) != number:
                raise Transient(f"{shown(url)}: {name} is there twice, with {found[name]} and {number}")
    return found


def _sample(url: str, line: str) -> tuple[str, str]:
    """A line's canonical name and its value."""
    end = line.rfind("}") + 1 or len(line.split(None, 1)[0])
    name, value = _name_of(line[:end]), VALUE.fullmatch(line, end)
    if name is None or value is None:
        raise Transient(f"{shown(url)}: a line is not in Prometheus' text format", obstacle=Obstacle.ANOTHERS)
    return name, value[1]


@lru_cache(NAMES_KEPT)
def _name_of(told: str) -> str | None:
    """The canonical name of a metric with its labels; `None` where it is none. Further labels than `name` belong to MBeans that
    are not wanted. Kept, for a page has the same at every look."""
    match = METRIC.fullmatch(told)
    if match is None:
        return None
    metric, labels = match.groups()
    label = NAME_LABEL.search(labels or "")
    if label is None and labels and LABEL.search(labels):
        return canonical(metric) + canonical(labels)
    base = re.sub(r"_value$", "", metric, flags=re.IGNORECASE)
    return canonical(base) + canonical(label[1] if label else "")


def _number(url: str, name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise Transient(f"{shown(url)}: {name} has no number") from error
