"""PF09, PF16, PF19, PF21: the ensemble itself: its servers, who may write, who else is connected, how much fits."""

import re
from collections.abc import Iterator, Sequence

from domain.checks.check import MOST_OBJECTS, Check, Surveyed, of_zookeeper, some, unverifiable
from domain.decisions import Finding, Severity
from domain.observed.survey import ClientSession, EnsembleServer, ZooKeeperSurvey

LEADING = frozenset({"leader", "standalone"})
SERVING = frozenset({*LEADING, "follower", "observer"})
IDLE = "not serving"
"""As `activities.zk_to_kraft.zookeeper_survey` says it."""
MOST_OUTSTANDING = 100
MOST_LATENCY_MS = 200.0
"""On average since the server's counters were reset. A healthy one has a few milliseconds."""

JUTE_LIMIT = 1024 * 1024 - 1
"""`jute.maxbuffer` where nobody has set it (BinaryInputArchive.java): for one answer, of server and client alike."""
JUTE_SHARE = 0.5
JUTE_OPTION = re.compile(r"-Djute\.maxbuffer=(0x[0-9a-fA-F]+|\d+)")
LOGIN_OPTION = "java.security.auth.login.config"


def _servers(seen: Surveyed) -> Iterator[Finding]:
    modes = _modes(seen.survey.servers)
    for server, mode in zip(seen.survey.servers, modes, strict=True):
        if server.problem is not None:
            yield _server(server, server.problem, "an answer", "Start it, or remove it from zookeeper.connect.")
        elif mode is None:
            yield _untold(server, "srvr", "PF09", Severity.BLOCKER)
        elif mode not in SERVING:
            yield _server(server, f"mode {mode}", "leader or follower", "It has no quorum: read its log.")
    if None not in modes and sum(mode in LEADING for mode in modes) != 1:
        yield Finding(
            code="PF09",
            object="ensemble",
            observed=f"modes {', '.join(map(str, modes))}",
            expected="one leader",
            fix="Name all servers of one ensemble in zookeeper.connect, and check the state of each (zkServer.sh status).",
        )
    if "standalone" in modes:
        yield Finding(
            code="PF09",
            severity=Severity.WARNING,
            object="ensemble",
            observed="a single server",
            expected="three or more",
            fix="If it fails during the migration, dual write and rolling back have nothing to work with.",
        )


def _modes(servers: Sequence[EnsembleServer]) -> list[str | None]:
    """A leader that is told to serve no client (zookeeper.leaderServes=no) says that it does not: whom all others follow."""
    modes = [server.mode for server in servers]
    others = [mode for mode in modes if mode != IDLE]
    is_followed = set(others) <= {"follower", "observer"} and 2 * others.count("follower") >= len(servers)
    return ["leader" if mode == IDLE else mode for mode in modes] if is_followed and modes.count(IDLE) == 1 else modes


def _load(seen: Surveyed) -> Iterator[Finding]:
    for server in seen.survey.servers:
        if server.outstanding is not None and server.outstanding > MOST_OUTSTANDING:
            observed = f"{server.outstanding} requests outstanding"
            fix = "Wait until the ensemble keeps up with its clients."
            yield _slow(_server(server, observed, f"at most {MOST_OUTSTANDING}", fix))
        if server.latency is not None and server.latency > MOST_LATENCY_MS:
            observed, expected = f"an average latency of {server.latency:g} ms", f"at most {MOST_LATENCY_MS:g} ms"
            fix = (
                "Either its disk is too slow, or its counters are old. Reset the counters (echo srst | nc HOST PORT) and "
                "make a new plan."
            )
            yield _slow(_server(server, observed, expected, fix))


def _slow(finding: Finding) -> Finding:
    """A moment's load is no reason to refuse."""
    return finding.model_copy(update={"severity": Severity.WARNING, "is_momentary": True})


def _server(server: EnsembleServer, observed: str, expected: str, fix: str) -> Finding:
    return Finding(code="PF09", object=f"ZooKeeper {server.address}", observed=observed, expected=expected, fix=fix)


def _untold(server: EnsembleServer, word: str, code: str, severity: Severity) -> Finding:
    return unverifiable(
        code,
        f"ZooKeeper {server.address}",
        f"{word} is not in its 4lw.commands.whitelist",
        f"the server reports {'its mode and load' if word == 'srvr' else 'its clients'}",
        f"Add {word} to 4lw.commands.whitelist and restart the server. Or check it yourself and accept this finding.",
        severity,
    )


def _permissions(seen: Surveyed, tree: ZooKeeperSurvey) -> Iterator[Finding]:
    """Where everybody may write, so may controllers. Else they need an identity, and so do we for the way back."""
    if not tree.protected:
        return
    if tree.refused is not None:
        yield Finding(
            code="PF16",
            object="our own identity",
            observed=tree.refused,
            expected="it may set /controller_epoch and delete /controller, which a rollback has to do",
            fix="Name an identity with all rights in digest_auth of the cluster's specification.",
        )
    for controller in seen.spec.controllers:
        texts = (*controller.driver.service.start_command, *controller.environment.values())
        if not any(LOGIN_OPTION in text for text in texts):
            yield unverifiable(
                "PF16",
                seen.name(controller.id),
                f"neither start command nor environment names {LOGIN_OPTION}, and these znodes are protected: "
                f"{some(tree.protected, 3)}",
                "the controller connects to ZooKeeper with an identity that may read, create, set and delete",
                f"Add -D{LOGIN_OPTION}=… to its KAFKA_OPTS, as the brokers have it. If it uses another identity, such as a "
                "certificate, accept this finding.",
            )


def _foreign(seen: Surveyed) -> Iterator[Finding]:
    untold = [server for server in seen.survey.servers if server.mode is not None and server.sessions is None]
    for server in untold:
        yield _untold(server, "cons", "PF19", Severity.WARNING)
    if seen.survey.zookeeper is None:
        yield unverifiable(
            "PF19",
            "clients of ZooKeeper",
            seen.survey.why_missing("survey of zookeeper"),
            "none but brokers",
            "Name an identity that may read everything in digest_auth.",
            Severity.WARNING,
        )
        return
    for address, session in _not_of_brokers(seen, seen.survey.zookeeper)[:MOST_OBJECTS]:
        yield Finding(
            code="PF19",
            severity=Severity.WARNING,
            object=f"client {session.client}",
            observed=f"session {session.id:#x} from {address}, which is not a broker of this cluster",
            expected="none but brokers",
            fix="Find out what it is: a schema registry, Cruise Control, a script with --zookeeper, another cluster. It "
            "loses sight of this cluster when ZooKeeper is removed.",
        )


def _not_of_brokers(seen: Surveyed, tree: ZooKeeperSurvey) -> list[tuple[str, ClientSession]]:
    """A broker has more sessions than the one that it registers with: its authorizer has its own (AclAuthorizer.scala). They
    come from sockets of its process to a server's port (a port of its own may be another process's too, towards another peer);
    where those cannot be looked at, from its address.
    """
    sessions = [(server.address, session) for server in seen.survey.servers for session in server.sessions or ()]
    registered = {registration.session: registration.broker_id for registration in tree.registrations}
    looks = {broker.id: seen.node(broker.id).look for broker in seen.spec.brokers}
    ends = (both for look in looks.values() if look is not None for both in look.sockets or ())
    sockets = {(own, _port(peer)) for own, peer in ends}
    unseen = {broker_id for broker_id, look in looks.items() if look is None or look.sockets is None}
    hosts = {_host(session.client) for _, session in sessions if registered.get(session.id) in unseen}
    return [
        (address, session)
        for address, session in sessions
        if session.id not in registered
        and (session.client, _port(address)) not in sockets
        and _host(session.client) not in hosts
    ]


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def _port(address: str) -> str:
    return address.rpartition(":")[2]


def _sizes(seen: Surveyed, tree: ZooKeeperSurvey) -> Iterator[Finding]:
    texts = [text for c in seen.spec.controllers for text in (*c.driver.service.start_command, *c.environment.values())]
    given = [int(found[1], 0) for text in texts for found in JUTE_OPTION.finditer(text)]
    limit = min(given, default=JUTE_LIMIT)
    sizes = ((tree.largest, tree.largest_bytes), (f"the list of {tree.longest_list}", tree.longest_list_bytes))
    for what, size in sizes:
        if size > limit * JUTE_SHARE:
            yield Finding(
                code="PF21",
                severity=Severity.WARNING,
                object=what,
                observed=f"{size} bytes",
                expected=f"at most half of jute.maxbuffer, which is {limit} for controllers",
                fix="Raise -Djute.maxbuffer on controllers, brokers and ZooKeeper servers alike. Or delete what is not "
                "needed there. A larger answer ends the session, and a process that starts then asks for it again "
                "without end.",
            )


CHECKS = (
    Check(
        code="PF09",
        holds="every server of `zookeeper.connect` serves, one leads, and none is behind with its requests",
        because="ZooKeeper is needed until finalisation: for the copy, for dual write, and for a rollback",
        source="`srvr` of each server",
        unverifiable="the word `srvr` is not on the server's whitelist",
        of_survey=(_servers, _load),
    ),
    Check(
        code="PF16",
        holds="controllers and Keeperless may read, create, set and delete all that Kafka has in ZooKeeper",
        because="a controller without these rights dies when it claims the cluster, and without them Keeperless cannot roll "
        "back",
        source="access lists of the znodes that are written; a transaction with the configured identity that is built to fail",
        unverifiable="znodes are protected and nothing shows that a controller will have an identity; or ZooKeeper does not "
        "let the configured identity read",
        of_survey=(of_zookeeper("PF16", _permissions),),
    ),
    Check(
        code="PF19",
        severity=Severity.WARNING,
        holds="only brokers are connected to ZooKeeper",
        because="any other client of ZooKeeper loses sight of the cluster when ZooKeeper is removed",
        source="`cons` of each server, the sessions in `/brokers/ids`, and the sockets of brokers' processes",
        unverifiable="the word `cons` is not on the server's whitelist",
        of_survey=(_foreign,),
    ),
    Check(
        code="PF21",
        severity=Severity.WARNING,
        holds="the largest znode and the longest list of names are below half of `jute.maxbuffer`",
        because="a larger answer ends the controller's session, again and again",
        source="all znodes that the copy reads, lists of notifications; `-Djute.maxbuffer` of the controllers",
        unverifiable="ZooKeeper does not let the configured identity read",
        of_survey=(of_zookeeper("PF21", _sizes, Severity.WARNING),),
    ),
)
