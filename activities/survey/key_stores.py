"""A node's keystore and truststore as Java opens them, by keytool on the node. Writes nothing there.

Passwords go to it by its environment. Private keys stay where they are, but for PEM: that file has the key beside the
certificates, and is read here to see that it opens.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from activities.ports.nodes import Completed, NodeDriver
from activities.survey.certificates import certificates_in, described
from domain.cluster import NodeSpec
from domain.configuration.properties import ENCODING
from domain.errors import Permanent
from domain.observed.survey import Certificate

KEYTOOL_TIME = timedelta(seconds=30)
SMALL = ("-J-Xmx64m", "-J-XX:TieredStopAtLevel=1", "-J-Duser.language=en")
KEY_ENTRY = "Entry type: PrivateKeyEntry"
PASSWORD, KEY_PASSWORD = "KEEPERLESS_STORE", "KEEPERLESS_KEY"
FOR_EVERY_JVM = frozenset({"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"})
ELSEWHERE = "${"
"""Begins a value that a config provider has (KIP-297)."""


class NotSeen(Exception):
    """It cannot be looked at, and why."""


class Wrong(Exception):
    """It is not as Kafka needs it."""


@dataclass(frozen=True)
class NodeSettings:
    """One node with the settings that it has, or a controller will have. `tools`: where Java's programs are."""

    node: NodeSpec
    driver: NodeDriver
    properties: Mapping[str, str]

    @property
    def environment(self) -> dict[str, str]:
        """The node's, without what would put its agents into a tool: their ports are taken."""
        return {name: value for name, value in self.node.environment.items() if name not in FOR_EVERY_JVM}

    @property
    def tools(self) -> str:
        home = self.node.environment.get("JAVA_HOME")
        return f"{home}/bin/" if home else ""


@dataclass
class Stores:
    """What a node shows, and whom it believes. `None`: it could not be seen, or there is none."""

    chain: Sequence[x509.Certificate] = ()
    certificate: Certificate | None = None
    trusted: Sequence[x509.Certificate] | None = None
    problems: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """What is wrong with one store, or cannot be seen, says nothing of the other."""
        try:
            yield
        except Wrong as error:
            self.problems.append(str(error))
        except NotSeen as error:
            self.unknown.append(str(error))


async def look_at_stores(asked: NodeSettings, settings: Mapping[str, str], *, needs_key: bool) -> Stores:
    """The keystore, where there is one or has to be (`needs_key`: then the key is opened, too), and the truststore."""
    stores = Stores()
    is_without = not any(settings.get(f"ssl.keystore.{name}", "").strip() for name in ("location", "key"))
    with stores.noting():
        if not is_without:
            chain = await _chain(asked, settings, needs_key=needs_key)
            stores.chain, stores.certificate = chain, _described(chain)
        elif needs_key:
            stores.problems.append("there is no keystore: ssl.keystore.location is not set")
    with stores.noting():
        stores.trusted = await _trusted(asked, settings)
    return stores


def _described(chain: Sequence[x509.Certificate]) -> Certificate:
    try:
        return described(chain)
    except ValueError as error:
        raise NotSeen(f"the keystore's certificate is of a form that is not known here: {error}") from error


async def _chain(asked: NodeSettings, settings: Mapping[str, str], *, needs_key: bool) -> list[x509.Certificate]:
    if _kind(settings, "keystore") == "PEM":
        return await _pem_chain(asked, settings)
    entries = [e for e in (await _listed(asked, settings, "keystore")).split("Alias name: ")[1:] if KEY_ENTRY in e]
    if not entries:
        raise Wrong(f"keystore {settings['ssl.keystore.location']} has no private key")
    if len(entries) > 1:
        raise NotSeen(
            f"keystore {settings['ssl.keystore.location']} has {len(entries)} keys, and nothing says which Java shows"
        )
    if needs_key:
        await _open_key(asked, settings, entries[0].partition("\n")[0].strip())
    return _read(entries[0], "keystore")


async def _trusted(asked: NodeSettings, settings: Mapping[str, str]) -> list[x509.Certificate]:
    inline, path = (settings.get(f"ssl.truststore.{name}", "").strip() for name in ("certificates", "location"))
    if not inline and not path:
        raise NotSeen("ssl.truststore.location is not set: then Java's own truststore is used, which was not checked")
    if _kind(settings, "truststore") == "PEM":
        return _read(inline or await _file(asked, path, "truststore"), "truststore")
    return _read(await _listed(asked, settings, "truststore"), "truststore")


def _kind(settings: Mapping[str, str], store: str) -> str:
    engine = settings.get("ssl.engine.factory.class", "").strip()
    if engine:
        raise NotSeen(f"ssl.engine.factory.class={engine}: only that class knows how it uses stores")
    names = (f"ssl.{store}.{name}" for name in ("location", "password", "type", "key"))
    elsewhere = [name for name in (*names, "ssl.key.password") if ELSEWHERE in settings.get(name, "")]
    if elsewhere:
        raise NotSeen(f"{elsewhere[0]} is with a config provider, which only Kafka asks")
    return settings.get(f"ssl.{store}.type", "JKS").strip().upper()


async def _pem_chain(asked: NodeSettings, settings: Mapping[str, str]) -> list[x509.Certificate]:
    path = settings.get("ssl.keystore.location", "").strip()
    text = await _file(asked, path, "keystore") if path else ""
    shown, key = (text, text) if path else (settings.get("ssl.keystore.certificate.chain", ""), settings["ssl.keystore.key"])
    password = settings.get("ssl.key.password", "")
    chain = _read(shown, "keystore")
    begin = key.rfind("-----BEGIN", 0, max(key.find("PRIVATE KEY-----"), 0))  # a certificate may stand before it
    try:
        opened = load_pem_private_key(key[max(begin, 0) :].encode(), password.encode() or None)
    except (ValueError, TypeError) as error:
        raise Wrong("the key of the PEM keystore does not open with ssl.key.password") from error
    except UnsupportedAlgorithm as error:
        raise NotSeen(f"the key of the PEM keystore is of a form that is not known here: {error}") from error
    if opened.public_key() != chain[0].public_key():
        raise Wrong("the key of the PEM keystore is not that of its first certificate")
    return chain


async def _file(asked: NodeSettings, path: str, what: str) -> str:
    try:
        file = await asked.driver.read_file(path)
    except Permanent as error:
        raise NotSeen(str(error)) from error
    if file is None:
        raise Wrong(f"{what} {path} does not exist")
    return file.content.decode(ENCODING)


def _read(text: str, what: str) -> list[x509.Certificate]:
    try:
        found = certificates_in(text)
    except ValueError as error:
        raise NotSeen(f"a certificate in the {what} is of a form that is not known here: {error}") from error
    if not found:
        raise Wrong(f"the {what} has no certificate")
    return found


async def _listed(asked: NodeSettings, settings: Mapping[str, str], store: str) -> str:
    path, kind = settings[f"ssl.{store}.location"].strip(), _kind(settings, store)
    password = settings.get(f"ssl.{store}.password", "")
    given = ("-storepass:env", PASSWORD) if password else ()
    done = await _keytool(asked, ("-list", "-rfc", "-keystore", path, "-storetype", kind, *given), {PASSWORD: password})
    if done.exit_code:
        raise Wrong(f"{store} {path} ({kind}) does not open: {_last_words(done)}")
    return done.output


async def _open_key(asked: NodeSettings, settings: Mapping[str, str], alias: str) -> None:
    """A request for a certificate is signed with the key, so the key has to open. It is thrown away."""
    path, kind = settings["ssl.keystore.location"].strip(), _kind(settings, "keystore")
    password = settings.get("ssl.keystore.password", "")
    key_password = settings.get("ssl.key.password") or password
    if kind == "PKCS12" and key_password != password:
        raise NotSeen(f"keystore {path} has a ssl.key.password of its own, which keytool cannot try on PKCS12")
    store = ("-keystore", path, "-storetype", kind, "-storepass:env", PASSWORD, "-keypass:env", KEY_PASSWORD)
    done = await _keytool(asked, ("-certreq", "-alias", alias, *store), {PASSWORD: password, KEY_PASSWORD: key_password})
    if done.exit_code:
        raise Wrong(f"the key in {path} does not open: {_last_words(done)}")


async def _keytool(asked: NodeSettings, arguments: Sequence[str], secrets: Mapping[str, str]) -> Completed:
    program = [f"{asked.tools}keytool", *SMALL, *arguments]
    try:
        return await asked.driver.run(program, {**asked.environment, **secrets}, KEYTOOL_TIME)
    except Permanent as error:
        raise NotSeen(f"keytool cannot be run there: {error}") from error


def _last_words(done: Completed) -> str:
    """Of the first line that tells: keytool repeats an error's kinds before its text."""
    told = [line for line in (done.output + "\n" + done.errors).splitlines() if "rror" in line or "xception" in line]
    return (told or ["without a word"])[0].strip()[:300]
