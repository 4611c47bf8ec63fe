"""What kafka-python's errors mean: for people, and for whoever may try again."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from kafka.errors import (
    AuthorizationError,
    ClusterAuthorizationFailedError,
    InvalidReceiveError,
    KafkaConnectionError,
    KafkaError,
    KafkaProtocolError,
    KafkaTimeoutError,
    NodeNotReadyError,
    PolicyViolationError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
    ThrottlingQuotaExceededError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownTopicOrPartitionError,
    UnsupportedSaslMechanismError,
)

from activities.adapters.kafka_admin.transport import NoConnection
from activities.own_network import no_tls
from domain.cluster import KafkaClientSpec
from domain.errors import Absent, NotLetIn, Obstacle, Permanent, Transient
from domain.quorum_log.metadata_log import shown as printable

NEVER_WORKS = (
    AuthorizationError,
    ClusterAuthorizationFailedError,
    TopicAuthorizationFailedError,
)

WORDS: dict[type[KafkaError], str] = {
    UnknownError: "a broker fails on the request, with an internal error",
    KafkaConnectionError: "closes our connection, or cannot be reached",
    NodeNotReadyError: "accepts the connection, and does not answer on it",
    KafkaTimeoutError: "gives no answer in time",
    RequestTimedOutError: "gives no answer in time",
}
"""What errors of kafka-python mean, where their names do not say it."""

LATE = frozenset({KafkaConnectionError, NodeNotReadyError, KafkaTimeoutError, RequestTimedOutError})
"""Of those that one broker need not share with the others."""


def obstacle_at_one(error: KafkaError) -> tuple[Obstacle | None, str]:
    """What keeps one broker from answering that others need not have, in words; no obstacle where that is not known."""
    if isinstance(error.__cause__, ssl.SSLError):
        return Obstacle.TLS, no_tls(error.__cause__)
    if isinstance(error, InvalidReceiveError):
        return Obstacle.TLS, "it does not speak security.protocol of client_properties"
    if isinstance(error, SaslAuthenticationFailedError | UnsupportedSaslMechanismError):
        return Obstacle.FORBIDDEN, f"it rejects the login ({error})"
    if isinstance(error, KafkaProtocolError):
        return Obstacle.GARBLED, f"its answer is not one of Kafka's protocol ({type(error).__name__})"
    if type(error) in LATE:
        return Obstacle.LATE, f"it {WORDS[type(error)]}"
    return None, ""


USED_UP = (
    "a quota (controller_mutation_rate) of the user or client that Keeperless connects as, or of the default one, is used up"
)


SAID = 300
"""Characters of what a policy says."""


@contextmanager
def translated_errors(spec: KafkaClientSpec) -> Iterator[None]:
    where = f"Kafka at {','.join(spec.bootstrap_servers)}"
    try:
        yield
    except NEVER_WORKS as error:
        raise Permanent(f"{where}: not authorized ({type(error).__name__}); correct client_properties or the ACLs") from error
    except (NoConnection, SaslAuthenticationFailedError) as error:
        raise NotLetIn(f"{where}: no connection can be made ({error}); check client_properties") from error
    except UnknownTopicOrPartitionError as error:
        about = f" ({error.args[0]})" if error.args else ""
        raise Absent(f"{where}: knows no such topic or partition{about}") from error
    except ThrottlingQuotaExceededError as error:
        raise Transient(f"{where}: {USED_UP}", obstacle=Obstacle.QUOTA) from error
    except PolicyViolationError as error:
        said = printable(str(error.args[0]))[:SAID] if error.args else ""
        raise Transient(f"{where}: a policy of its own refuses it: {said}", obstacle=Obstacle.POLICY) from error
    except KafkaError as error:
        if isinstance(error, NodeNotReadyError) and "throttle" in str(error):  # as long as the answer before has said
            raise Transient(f"{where}: throttles the request, because {USED_UP}", obstacle=Obstacle.QUOTA) from error
        told = WORDS.get(type(error), "does not answer as expected")
        raise Transient(f"{where}: {told} ({type(error).__name__})") from error
