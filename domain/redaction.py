"""What people may see of properties and of words: the one place that says so for plans, runbooks, evidence, events and logs.

An allow-list. The value of a property is shown if Kafka's own definition says that the property is no password, and the value
looks like one of it: files in the field have a comment, or the whole next line, inside a value. Every comment is hidden: it may
be a line that was taken out. Names of properties stay, but not what only looks like a name: where a value was broken into lines
Kafka reads each line as a property, and then half of a key, or of a password, is a name.
"""

import re

from domain.configuration.kafka_properties import DYNAMIC_ONLY, OF_PLUGINS, OF_THE_PAST, OTHERS, PASSWORDS
from domain.configuration.provided_values import REFERENCE

HIDDEN = "***"

HARMLESS = (OTHERS | OF_PLUGINS | DYNAMIC_ONLY | OF_THE_PAST) - {"sasl.kerberos.kinit.cmd"}
"""Properties whose values may be shown. A command may have anything in it."""
KNOWN = HARMLESS | PASSWORDS

OF_A_LISTENER = re.compile(
    r"listener\.name\.[\w-]+\.(?:(?:scram-sha-256|scram-sha-512|gssapi|plain|oauthbearer)\.(?=sasl\.))?", re.IGNORECASE
)
OF_A_PROVIDER = re.compile(r"config\.providers\.[\w-]{1,40}\.class")
NAME = re.compile(r"[a-z][a-z_-]{0,29}\d{0,5}(?:\.[a-z][a-z_-]{0,29}\d{0,5}){1,11}")
"""The name of a property that Kafka does not know, as a plug-in's is."""

OF_PRINCIPALS = frozenset({"sasl.kerberos.principal.to.local.rules", "ssl.principal.mapping.rules", "super.users"})
NOT_OF_OTHERS = re.compile(r"=|:[^,;\s/]*@")
"""What values of these alone may have: names of certificates and realms. In any other it is the next line of the file, or a
login."""
COMMENT = re.compile(r"(?:^|(?<=[\s,;]))[#!].*|[#!](?=.*\s).*", re.DOTALL)
"""Inside a value, for Kafka knows none there: behind a value, or a comment below a line that goes on."""
SUSPECT = re.compile(
    r"[\"'\r\n]|://[^/\s]*@|-----|"
    r"(?:pass(?:word|phrase|wd)?|pwd|secret|token|api.?key|credential|jaas|user_\w)[\w.-]*(?:\s*[=:](?!//)|\s+\S)",
    re.IGNORECASE,
)
"""In a value that should have nothing of it: an address with a password, a login, a key, or another property that has one."""

SECRETIVE_NAME = re.compile(
    r"pass(word|phrase|wd)|pwd|secret|jaas|credential|token|private|user\.?info|licen[cs]e|key$", re.IGNORECASE
)
"""Names of environment variables whose values are never shown. Others are people's own, and in the cluster's specification."""


def is_known(key: str) -> bool:
    """Whether Kafka knows a property of this name, a listener's prefix included."""
    return OF_A_LISTENER.sub("", key, count=1) in KNOWN or OF_A_PROVIDER.fullmatch(key) is not None


def is_harmless(key: str) -> bool:
    """Whether the value of a property of this name may be shown, if it looks like one."""
    return OF_A_LISTENER.sub("", key, count=1) in HARMLESS or OF_A_PROVIDER.fullmatch(key) is not None


def is_name(key: str, value: str) -> bool:
    """Whether this is the name of a property, and no part of a value. A word alone is a name only if Kafka knows it."""
    return is_known(key) or (value != "" and NAME.fullmatch(key) is not None)


def shown_name(key: str, value: str) -> str:
    return key if is_name(key, value) else HIDDEN


def shown_value(key: str, value: str) -> str:
    """A property's value as people may see it: whole, without what follows a comment's sign, or not at all.

    A reference to a configuration provider is shown, whatever the property.
    """
    if is_name(key, value) and REFERENCE.fullmatch(value.strip()):
        return value
    if not is_harmless(key):
        return HIDDEN
    comment = COMMENT.search(value)
    plain = value if comment is None else value[: comment.start()]
    told = REFERENCE.sub("", plain)
    is_of_principals = OF_A_LISTENER.sub("", key, count=1) in OF_PRINCIPALS
    if SUSPECT.search(told) or (not is_of_principals and NOT_OF_OTHERS.search(told)):
        return HIDDEN
    return plain if comment is None else f"{plain}# {HIDDEN}"


def is_shown(key: str, value: str) -> bool:
    """Whether both, name and value, may be shown as they are."""
    return is_name(key, value) and shown_value(key, value) == value


QUOTED = re.compile(r"\"[^\"]*\"|(?<!\w)'[^']*'|\{[^{}]*\}|\[[^\[\]]*\]")
VALUED = re.compile(r"([\w.-]+)\s*([=:])\s*(?!:)(\S+)")
SECRETIVE = re.compile(
    r"(?i)pass|phrase|secret|token|key|credential|salt|jaas|auth|login|private|user|pwd|cookie|session|digest|\b(?:pw|pin)\b"
)
OF_PROSE = re.compile(r"[\w.,;()'`+-]+:?")
"""A word, a version, or a host's name: no part of an address that may have who it is for, or what it is asked."""
BEARER = re.compile(r"(?i)\b(bearer|basic) \S+")
LONG = re.compile(r"(?=[\w+/=-]*[\d+/=])[\w+/=-]{12,}")
NEAR = 60
"""Characters before a colon in which a secret may have been spoken of."""
DOTTED = re.compile(r"(?<![\w-])[\w-]+(?:\.[\w-]+)+")


def stripped(text: str, *, is_prose: bool = False) -> str:
    """Removes what is quoted or bracketed, values of keys, and words that look like encoded bytes. Names of Kafka's properties
    stay.

    `is_prose`: a colon ends who speaks, or what fails, as in `sudo: no tty`, but where a secret is spoken of before it.
    """
    left, at = BEARER.sub(rf"\1 {HIDDEN}", QUOTED.sub(_quoted, text)), 0
    parts = []
    while (found := VALUED.search(left, at)) is not None:
        if _is_named(found) or (is_prose and _is_harmless(found)):
            parts.append(left[at : found.start(3)])
            at = found.start(3)
        else:
            parts.append(f"{left[at : found.end(1)]}={HIDDEN}")
            at = found.end()
    return _without_encoded("".join([*parts, left[at:]]))


def _quoted(found: re.Match[str]) -> str:
    """Nothing but names of properties is shown."""
    names = [name.strip() for name in found[0][1:-1].split(",")]
    return found[0] if all(map(is_known, names)) else HIDDEN


def _is_named(found: re.Match[str]) -> bool:
    """What follows a colon is a property's name, and no value."""
    return found[2] == ":" and is_known(found[3].strip("[]\"'.,;:"))


def _without_encoded(text: str) -> str:
    """A part of a property's name may be long, as one of a listener's is."""
    names = [found.span() for found in DOTTED.finditer(text) if is_known(found[0])]

    def told(found: re.Match[str]) -> str:
        return found[0] if any(start <= found.start() and found.end() <= end for start, end in names) else HIDDEN

    return LONG.sub(told, text)


def _is_harmless(found: re.Match[str]) -> bool:
    before = found.string[max(0, found.start() - NEAR) : found.end(1)]
    return found[2] == ":" and OF_PROSE.fullmatch(found[3]) is not None and SECRETIVE.search(before) is None
