"""What a caller may do about an error.

    KeeperlessError
    ├── Transient      the same call may succeed later: try again
    │   ├── Absent     the other side has answered: what the call is about is not there (yet)
    │   ├── NotLetIn   what we were given to connect with does not fit: right once somebody has corrected it
    │   ├── BrokerApart one broker keeps the whole from being known: it is named
    │   └── OtherLedger whoever asks has found it in the ledger, and our ledger is another one
    ├── Unsafe         going on could hurt the cluster: stop, touch nothing else, ask a person
    ├── Permanent      the same call will never succeed: change the input
    │   └── Malformed  a file is not what its format asks for: its line is named
    └── Superseded     this run has lost its claim to the cluster: stop at once, somebody else leads

Messages carry the object, what was observed, what was expected, and what to do, in that order.
`activities.failures` is the one place that turns these into Temporal failures.
"""

from enum import StrEnum


class Obstacle(StrEnum):
    """Why an address does not answer as it should, where that is known: whose affair it is."""

    UNRESOLVED = "unresolved"
    """Its name is not resolved by whoever asks."""
    OURS = "ours"
    """Whoever asks lacks what a connection takes."""
    TLS = "tls"
    """A connection, and no TLS on it: a certificate, or a protocol."""
    FORBIDDEN = "forbidden"
    """An answer: no."""
    ANOTHERS = "anothers"
    """An answer that whoever is asked would not give."""
    GARBLED = "garbled"
    """An answer that cannot be read as one of Kafka's."""
    TORN = "torn"
    """Answers of two that should be one."""
    LATE = "late"
    """A connection, and no answer on it in time."""
    QUOTA = "quota"
    """A refusal for now: somebody limits how much is changed."""
    POLICY = "policy"
    """A refusal by a plug-in of the cluster's own."""
    DELETED = "deleted"
    """What was made a moment ago is not there any more."""
    MALFORMED = "malformed"
    """A file that cannot be read as its format says."""


class KeeperlessError(Exception):
    """Root of all errors that Keeperless raises on purpose. `fix`: what mends it, where the message does not say so."""

    fix: str = ""


class Transient(KeeperlessError):
    """Something did not answer, or is not ready yet. Trying again is right and safe. `obstacle`: why, where it is known."""

    def __init__(self, *words: object, obstacle: Obstacle | None = None) -> None:
        super().__init__(*words)
        self.obstacle = obstacle


def obstacle_of(error: KeeperlessError) -> Obstacle | None:
    """Why, where it is known."""
    return error.obstacle if isinstance(error, Transient | Malformed) else None


class Absent(Transient):
    """What the call is about is not there, as far as who was asked knows. That was an answer."""


class NotLetIn(Transient):
    """Our protocol, certificates or files are not what the other side wants. They are read anew with every try."""


class BrokerApart(Transient):
    """One broker keeps what was asked from being known. `address`: where it is said to listen, and nobody does; else `None`.
    `listed`: where it lists others than another one, all that either does.
    """

    def __init__(
        self,
        message: str,
        broker_id: int,
        address: str | None = None,
        *,
        obstacle: Obstacle | None = None,
        listed: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(message, obstacle=obstacle)
        self.broker_id, self.address, self.listed = broker_id, address, listed


class OtherLedger(Transient):
    """Whoever asks has found it in the ledger, and ours, at `place`, has not got it. Right once we are given the same."""

    def __init__(self, what: str, place: str) -> None:
        super().__init__(
            f"{what} is not in the ledger of this worker, {place}, though it is in the ledger of the program that asked: "
            "they are two. Stop that worker, and start it with the KEEPERLESS_LEDGER_URL that the API has. If it belongs to "
            "another installation, give it a TEMPORAL_NAMESPACE of its own"
        )


class Unsafe(KeeperlessError):
    """Going on could cost availability or data. A person has to look before anything else is touched."""


class Permanent(KeeperlessError):
    """The input can never work: wrong credentials, wrong path, wrong version."""


class Malformed(Permanent):
    """A file cannot be read as its format says: correct it. The message names line and character, and shows no value."""

    obstacle = Obstacle.MALFORMED


class Superseded(KeeperlessError):
    """Another run holds the cluster now: this one must not have any further effect."""
