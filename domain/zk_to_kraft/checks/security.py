"""PF30–PF33: who may do what, and with which secrets."""

from collections.abc import Iterator

from domain.checks.check import (
    NOT_READ,
    NOT_TOLD,
    READ_IT,
    Check,
    Seen,
    Surveyed,
    not_read,
    of_zookeeper,
    some,
    unverifiable,
)
from domain.configuration.listener_security import ANONYMOUS, inter_broker_listener, protocol_of
from domain.configuration.provided_values import is_provided
from domain.decisions import Finding, Severity
from domain.observed.survey import ZooKeeperSurvey
from domain.zk_to_kraft.node_config import AUTHORIZERS_IN_KRAFT

AUTHORIZER, BUILDER = "authorizer.class.name", "principal.builder.class"
USERS, OPEN = "super.users", "allow.everyone.if.no.acl.found"
ENCODER_SECRET = "password.encoder.secret"  # noqa: S105 - the name of a key
TOKEN_SECRETS = ("delegation.token.secret.key", "delegation.token.master.key")
PASSWORDS = (
    "sasl.jaas.config",
    "ssl.key.password",
    "ssl.keystore.password",
    "ssl.truststore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
)
"""Ends of dynamic broker configs of type PASSWORD (kafka.server.DynamicBrokerConfig)."""


def _super_users(seen: Surveyed) -> Iterator[Finding]:
    """With an authorizer, whoever commands brokers and controllers must be allowed to: ACLs do not say so for controllers."""
    for broker in seen.spec.brokers:
        settings = seen.settings(broker.id)
        if not settings.get("authorizer.class.name", "").strip():
            continue
        listener = inter_broker_listener(settings)
        comers = {f"{listener} ({protocol_of(settings, listener)})": seen.node(broker.id).principal}
        if seen.spec.controller_security_protocol == "PLAINTEXT":
            comers[f"{seen.spec.controller_listener} (PLAINTEXT)"] = ANONYMOUS
        for what, principal in comers.items():
            yield from _super_user(seen.name(broker.id), what, principal, settings)


def _super_users_at_controllers(seen: Surveyed) -> Iterator[Finding]:
    """Where that listener is not plain: everybody who comes to it, by what each node has for it."""
    if seen.spec.controller_security_protocol == "PLAINTEXT" or not seen.controller_settings.get("authorizer.class.name", ""):
        return
    securities = {node.id: seen.node(node.id).security for node in seen.spec.nodes}
    servers = [security for c in seen.spec.controllers if (security := securities[c.id]) is not None]
    asks = any(server.client_auth != "none" for server in servers)
    is_nameless = seen.spec.controller_security_protocol == "SSL" and not asks
    comers: dict[str | None, list[str]] = {}
    for node_id, security in securities.items():
        if security is not None:
            comers.setdefault(ANONYMOUS if is_nameless else security.principal, []).append(seen.name(node_id))
    for principal, names in comers.items():
        for users in {seen.node(c.id).settings.get("super.users") for c in seen.spec.controllers}:
            settings = seen.controller_settings | ({"super.users": users} if users is not None else {})
            yield from _super_user(some(names), f"at {seen.spec.controller_listener}", principal, settings)


def _super_user(name: str, what: str, principal: str | None, settings: dict[str, str]) -> Iterator[Finding]:
    users = {user.strip() for user in settings.get(USERS, "").split(";")}
    expected = "the principal with which nodes connect is among super.users"
    if principal is None:
        yield unverifiable(
            "PF30",
            f"{name} {what}",
            "its file does not show which principal nodes connect with; super.users are "
            f"{some(sorted(users - {''})) or 'not set'}",
            expected,
            "Check that the principals of brokers and controllers are super users, and accept this finding.",
        )
    elif principal not in users and (unread := [key for key in (USERS, OPEN) if is_provided(settings.get(key, ""))]):
        told = ", ".join(f"{key}={settings[key]}" for key in unread)
        yield unverifiable("PF30", f"{name} {what}", f"{told}: {NOT_READ}", f"{principal} is among super.users", READ_IT)
    elif principal not in users:
        is_open = settings.get(OPEN, "false").strip().lower() == "true"
        yield Finding(
            code="PF30",
            severity=Severity.WARNING if is_open else Severity.BLOCKER,
            object=f"{name} {what}",
            observed=f"{principal} is not among super.users"
            + (", and is allowed in because allow.everyone.if.no.acl.found is true" if is_open else ""),
            expected=expected,
            fix=f"Add {principal} to super.users on every broker: controllers take the setting over.",
        )


def _authorizers(seen: Seen) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        name = seen.properties(broker.id).get(AUTHORIZER, "").strip()
        yield from _provided_authorizer(seen, broker.id, name)
        if name and name not in AUTHORIZERS_IN_KRAFT and not is_provided(name):
            yield Finding(
                code="PF31",
                object=seen.name(broker.id),
                observed=f"authorizer.class.name={name}",
                expected=f"one of {', '.join(AUTHORIZERS_IN_KRAFT)}",
                fix="This authorizer has no known counterpart in KRaft. Ask its vendor, or replace it before the migration.",
            )


def _provided_authorizer(seen: Seen, broker_id: int, name: str) -> Iterator[Finding]:
    """In KRaft the class is another one: that can be written into the file, and not into what the provider reads."""
    yield from not_read(seen, "PF31", broker_id, [AUTHORIZER], f"one of {', '.join(AUTHORIZERS_IN_KRAFT)}, in the file itself")
    file = seen.disk(broker_id).file
    reference = file.properties.get(AUTHORIZER, "") if file is not None else ""
    if is_provided(reference) and AUTHORIZERS_IN_KRAFT.get(name, name) != name:
        yield Finding(
            code="PF31",
            object=f"{seen.name(broker_id)} {AUTHORIZER}",
            observed=f"{AUTHORIZER}={reference}: a configuration provider gives {name}",
            expected=f"{AUTHORIZER}={name} in the file itself",
            fix=f"Write {AUTHORIZER}={name} into the file and restart the broker. KRaft mode needs another class: the "
            "migration replaces it in the file, and cannot replace the value of a provider.",
        )


def _principal_builders(seen: Surveyed) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        name = seen.settings(broker.id).get(BUILDER, "").strip()
        yield from not_read(seen, "PF31", broker.id, [BUILDER], "Kafka's own principal builder", Severity.WARNING)
        if name and not name.startswith("org.apache.kafka.") and not is_provided(name):
            yield Finding(
                code="PF31",
                severity=Severity.WARNING,
                object=seen.name(broker.id),
                observed=f"principal.builder.class={name}",
                expected="Kafka's own, or one that implements KafkaPrincipalSerde",
                fix="Ask its vendor whether it does: brokers forward requests to controllers, with the principal serialised.",
            )


def _encoder_secret(seen: Surveyed, tree: ZooKeeperSurvey) -> Iterator[Finding]:
    stored = stored_passwords(tree)
    if stored:
        yield from _parity(seen, "PF32", (ENCODER_SECRET,), f"{some(stored)} is stored encrypted")


def stored_passwords(tree: ZooKeeperSurvey) -> list[str]:
    """Dynamic broker configs that are passwords: znode and key."""
    return [
        f"/config/brokers/{name} {key}" for name, keys in tree.broker_configs.items() for key in keys if key.endswith(PASSWORDS)
    ]


def _token_secret(seen: Surveyed, tree: ZooKeeperSurvey) -> Iterator[Finding]:
    if tree.tokens:
        yield from _parity(seen, "PF33", TOKEN_SECRETS, f"{tree.tokens} delegation tokens exist")


def _parity(seen: Surveyed, code: str, keys: tuple[str, ...], why: str) -> Iterator[Finding]:
    """Every broker has the secret, and all the same; a controller's base file has it too, or leaves it to us to put it in."""
    found: dict[str, str] = {}
    for key in reversed(keys):
        found |= seen.secrets_of(seen.spec.brokers, key)
    lacking = [seen.name(broker.id) for broker in seen.spec.brokers if seen.name(broker.id) not in found]
    for controller in seen.spec.controllers:
        digests = seen.node(controller.id).digests
        found |= {seen.name(controller.id): digests[key] for key in reversed(keys) if key in digests}
    if lacking or len(set(found.values())) > 1:
        yield Finding(
            code=code,
            object=keys[0],
            observed=f"{why}; " + (f"not set on {some(lacking)}" if lacking else f"not the same on {some(sorted(found))}"),
            expected="one value on every broker, which controllers take over",
            fix=f"Set {keys[0]} to the same value everywhere: without it a controller cannot decode what it copies.",
        )


UNREADABLE = "ZooKeeper does not let the configured identity read"

CHECKS = (
    Check(
        code="PF30",
        holds="if there is an authorizer, the principals with which brokers and controllers connect are super users",
        because="the cluster stops if a controller may not command brokers, or a broker may not register. If everyone is "
        "allowed in because there are no ACLs, it is a warning",
        source="`super.users`, listeners and the user names of logins in brokers' files; certificates for the controllers' "
        "listener",
        unverifiable=f"nodes connect with a certificate, a ticket or a token, whose principal a file does not show; {NOT_TOLD}",
        of_survey=(_super_users, _super_users_at_controllers),
    ),
    Check(
        code="PF31",
        holds="the authorizer has a known counterpart in KRaft",
        because="without one, access rules would be lost, or all clients refused. A custom principal builder is a warning",
        source="brokers' files",
        unverifiable=NOT_TOLD,
        of_look=(_authorizers,),
        of_survey=(_principal_builders,),
    ),
    Check(
        code="PF32",
        holds=f"with dynamic passwords in ZooKeeper, every broker has the same `{ENCODER_SECRET}`",
        because="controllers take it over to decode them; without it the copied passwords are useless",
        source="`/config/brokers`; keyed digests of the secret in each file, never the secret",
        unverifiable=UNREADABLE,
        of_survey=(of_zookeeper("PF32", _encoder_secret),),
    ),
    Check(
        code="PF33",
        holds=f"with delegation tokens, every broker has the same `{TOKEN_SECRETS[0]}`",
        because="a controller refuses tokens that it cannot verify",
        source="`/delegation_token/tokens`; keyed digests of the secret in each file, never the secret",
        unverifiable=UNREADABLE,
        of_survey=(of_zookeeper("PF33", _token_secret),),
    ),
)
