"""How kafka-python connects, where it has to do better: sockets are closed, TLS ends in time, reasons are told."""

import socket
import ssl
from typing import Any

from kafka.errors import (
    InvalidReceiveError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.net.inet import KafkaNetSocket, create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport

DIRECTLY = "direct://"
"""Makes kafka-python use `DirectSocket`: it finds connectors by the scheme of `proxy_url`."""


class DirectSocket(KafkaNetSocket):  # type: ignore[misc]  # kafka-python has no types
    """Connects as kafka-python does, and closes the socket when nobody lets it in, which kafka-python forgets."""

    SCHEMES = ("direct",)

    async def sock_connect(
        self, net: NetworkSelector, sock: socket.socket, sockaddr: object, timeout_at: float | None = None
    ) -> object:
        try:
            return await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
        except BaseException:
            sock.close()
            raise


class TlsTransport(KafkaSSLTransport):  # type: ignore[misc]
    """Gives up in time who takes a connection, and begins no TLS: kafka-python waits for that without end."""

    async def handshake(self, timeout_at: float | None = None) -> None:
        while True:
            try:
                self._sock.do_handshake()
            except ssl.SSLWantReadError:
                await self._net.wait_read(self._sock, timeout_at)
            except ssl.SSLWantWriteError:
                await self._net.wait_write(self._sock, timeout_at)
            else:
                return


class NoConnection(KafkaError):  # type: ignore[misc]  # kafka-python has no types
    """Files of ours, TLS or the protocol do not fit: no next try will do better."""


HOPELESS = (
    InvalidReceiveError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
    FileNotFoundError,
    PermissionError,
    ssl.SSLError,
)
"""Why a first connection ends, where that lies with `client_properties`."""


class Manager(KafkaConnectionManager):  # type: ignore[misc]
    """Gives a server up as soon as the reason is known. kafka-python means to, and its connections keep such errors to
    themselves: it tried until its time was over, and told of the time."""

    def __init__(self, net: NetworkSelector, **configs: Any) -> None:  # noqa: ANN401
        super().__init__(net, **configs)
        self._hopeless: KafkaError | None = None

    def get_connection(self, node_id: object, **named: object) -> Any:  # noqa: ANN401
        is_first = self.cluster.is_bootstrap(node_id)
        if is_first and self._hopeless is not None:
            raise self._hopeless
        connection = super().get_connection(node_id, **named)
        if is_first:
            connection.close_future.add_errback(self._keep)
        return connection

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:  # noqa: ANN401
        """As kafka-python's, which leaves the socket open where TLS does not come about."""
        if not self.ssl_enabled:
            return await super()._build_transport(node, timeout_at=timeout_at)
        options, proxy = self.config["socket_options"], self.config["proxy_url"]
        sock = await create_connection(self._net, node.host, node.port, options, proxy_url=proxy, timeout_at=timeout_at)
        configs = {name: value for name, value in self.config.items() if name.startswith("ssl_")}
        try:
            transport = TlsTransport(self._net, sock, host=node.host, **configs)
        except BaseException:
            sock.close()
            raise
        try:
            await transport.handshake(timeout_at)
        except KafkaTimeoutError as error:
            transport.abort(error)
            raise
        except Exception as error:
            transport.abort(error)
            raise KafkaConnectionError(f"TLS: {error}") from error
        return transport

    def _keep(self, error: BaseException) -> None:
        why = error.__cause__ if isinstance(error.__cause__, ssl.SSLError) else error
        if isinstance(why, HOPELESS):
            self._hopeless = NoConnection(str(why) if isinstance(why, KafkaError) else f"{type(why).__name__}: {why}")
