"""Picks the reader by the kind of endpoint."""

from activities.adapters.metrics.gauges import READ_SECONDS
from activities.adapters.metrics.http import Exchange
from activities.adapters.metrics.jolokia import JolokiaMetrics
from activities.adapters.metrics.prometheus import PrometheusMetrics
from domain.cluster import JolokiaEndpoint, MetricsEndpoint
from domain.observed.observation import NodeMetrics


class EndpointMetrics:
    """`ClusterMetrics` for both kinds of agents. `seconds` limits one whole look at one node."""

    def __init__(self, seconds: float = READ_SECONDS) -> None:
        exchange = Exchange(seconds)
        self._jolokia = JolokiaMetrics(exchange)
        self._prometheus = PrometheusMetrics(exchange)

    async def read(self, endpoint: MetricsEndpoint) -> NodeMetrics:
        if isinstance(endpoint, JolokiaEndpoint):
            return await self._jolokia.read(endpoint.url)
        return await self._prometheus.read(endpoint.url)
