"""Lines of properties files with a secret in every place where public files have had one, for tests that search for it.

A broker with PLAINTEXT listeners starts with all of them: Kafka reads none of these settings there, or does not know them.
"""

from dataclasses import dataclass

LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
SHAPES = {
    "of a password's property": "ssl.key.password={}\n",
    "of a listener's property": "listener.name.spare.ssl.keystore.password : {}\n",
    "of an escaped property": "ssl.truststore\\u002epassword={}\n",
    "in a login of several lines": f'sasl.jaas.config={LOGIN} \\\n    username="admin" \\\n    password="{{}}";\n',
    "in a line that looks like a comment": (
        f'listener.name.spare.scram-sha-512.sasl.jaas.config={LOGIN} \\\n# password="{{}}";\n'
    ),
    "in a login that was broken into lines": (
        f'listener.name.spare.plain.sasl.jaas.config={LOGIN}\nusername="admin"\nuser_alice="{{}}";\n'
    ),
    "in a key that was broken into lines": "ssl.keystore.key=-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
    "of a user in a comment": '#    user_alice="{}";\n',
    "below a comment": "#ssl.key.password=\\\n{}\n",
    "of a key in a comment": "# -----BEGIN PRIVATE KEY-----\n#{}\n# -----END PRIVATE KEY-----\n",
    "in words": "# zk creds admin:{}\n",
    "in another kind of comment": "! old: zookeeper.connect=admin:{}@z1:2181\n",
    "in an address": "acme.registry.url=https://anna:{}@registry:8081\n",
    "of a plug-in": "acme.vault.handle={}\n",
    "behind a value": "sasl.kerberos.service.name=kafka # {}\n",
    "in a line that a value swallowed": "sasl.oauthbearer.scope.claim.name=scope\\\nssl.key.password={}\n",
    "in a comment that a value swallowed": "sasl.oauthbearer.sub.claim.name=sub,\\\n# creds admin:{}\n",
    "in the address of a property that is no secret": "sasl.oauthbearer.token.endpoint.url=https://anna:{}@idp/token\n",
}
REFERENCE = "ssl.truststore.password=${file:/etc/kafka/secret.properties:truststore}"
"""No secret, but where one lies: it may be shown. Without a provider of that name Kafka takes it as it stands."""


@dataclass(frozen=True)
class Seeded:
    """Lines for a properties file, and the secrets in them by the place of each."""

    text: str
    secrets: dict[str, str]


def seeded(name: str) -> Seeded:
    """Secrets of their own for each name. They look like words, and like encoded bytes, in turns."""
    secrets = {place: _secret(name, number) for number, place in enumerate(SHAPES)}
    return Seeded("".join(shape.format(secrets[place]) for place, shape in SHAPES.items()), secrets)


def _secret(name: str, number: int) -> str:
    return f"hush.{name}.sesame{number:02}" if number % 2 else f"MIIEvQIBADAN{name.capitalize()}hush{number:02}+Q=="
