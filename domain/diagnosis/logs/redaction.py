"""What may be seen of a line that no pattern knows: times, kinds of errors, paths, what ZooKeeper answers; no value. Pure."""

import re

from domain.redaction import SECRETIVE, stripped

LEVEL = re.compile(
    r"^\[?\d{4}-\d\d-\d\d[T ][\d:,.]{8,15}Z?\]?\s+(?:\[myid:\d*\]\s+-\s+)?\[?(TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b"
)
"""In Kafka's layout, in ZooKeeper's own, and in many that people have."""
THROWN = re.compile(
    r"(?:Caused by: |Suppressed: |Exception in thread \"[\w .-]{1,80}\" )?(?:[\w$]+\.)*[\w$]*(?:Exception|Error|Fault)(?:: |$)"
)
CHAIN = re.compile(f"(?:{THROWN.pattern})+")
"""Of what was thrown for another that was thrown."""
REFUSED = re.compile(r"Invalid value .*?( for configuration [\w.]+|$).*")
OF_ZOOKEEPERS_ANSWER = r"KeeperErrorCode = \w+(?: expired)?(?: for /\S{1,160})?"
OF_A_LOGIN = r"Not(?:After|Before): [A-Z][\w :]{1,40}|Invalid username or password|(?<=unknown user): [a-z_][\w-]{0,31}$"
TOP = r"(?:apps?|boot|data|disk|etc|home|lib|media|mnt|opt|root|run|s?bin|srv|te?mp|usr|u|var|vol(?:ume)?s?)\d{0,3}"
PATH = rf"(?<![\w+=/])(?:/{TOP}(?:/[\w.-]+)+|(?:/[a-z0-9._-]+){{2,}})(?![\w+=/])"
"""Below a directory that machines have, else in small letters only: what is encoded has others as well."""
WHO_SPEAKS = (
    r"\[(?:Partition [\w.-]{1,250}|[A-Z]\w{2,40})(?:,? (?:\w{0,20}[iI]d|broker|epoch)=\d{1,10}){1,4}(?: name=[a-z-]{1,30})?\]"
)
OF_THE_SYSTEM = (
    r": (?:Permission denied|No such file or directory|Operation not permitted|(?:I/O|Input/output) error|"
    r"No space left on device|Read-only file system|Resource temporarily unavailable)\b"
)
OF_A_REQUEST = r"(?<=RequestHeader\()apiKey=[A-Z_]{2,41}, apiVersion=\d{1,3}(?=[,)])"
OF_A_JVM = r"(?:Unrecognized|Improperly specified) VM option '[\w:+.=-]{1,60}'"
ADDRESS = r"(?:(?:(?<=server )|(?<=address )|(?<=to )|(?<=[(]))[\w.-]{1,80}/|(?<![\w=@:/.-]))\d{1,3}(?:\.\d{1,3}){3}:\d{1,5}\b"
CLOCK = r"(?<![\d:])\d\d:\d\d:\d\d(?![\d:])"
PLAIN = re.compile(
    f"({'|'.join((OF_ZOOKEEPERS_ANSWER, OF_A_LOGIN, PATH, WHO_SPEAKS, OF_THE_SYSTEM, OF_A_REQUEST, OF_A_JVM, ADDRESS, CLOCK))})"
)
"""Words that hold no secret."""
SUBJECT = re.compile(r" \[[\w .,=/:-]{1,200}\]")
"""What a line begins with, below Kafka's loggers: who speaks, and of which partition or directory."""
PROGRAM = r"(?:[\w.+-]{0,60}/[\w./+-]{1,60}|[\w.+-]{1,60}\.sh|java|jsvc|python3?|numactl|taskset|ionice|chrt|gosu|su-exec)"
SPEAKER = re.compile(
    r"(?:/[\w./-]+/)?-?(?:su|sudo|runuser|setpriv|env|chroot|nice|start|exec|\w{0,2}sh): (?:(?:line )?\d+: )?"
    rf"(?:['‘]{PROGRAM}['’]: )?"
)
"""What runs a start command, and the program that it names: of any other word nobody knows what it is."""


def without_secrets(text: str) -> str:
    """Times, kinds of errors, paths and what ZooKeeper answers stay: they say where to look."""
    found = LEVEL.match(text) or CHAIN.match(text) or SPEAKER.match(text)
    begun = found.end() if found is not None else 0
    subject = SUBJECT.match(text, begun) if LEVEL.match(text) else None
    begun = subject.end() if subject is not None and not SECRETIVE.search(subject[0]) else begun
    parts = PLAIN.split(REFUSED.sub(r"Invalid value …\1", text[begun:]))
    told = "".join(part if number % 2 else stripped(part, is_prose=True) for number, part in enumerate(parts))
    return (text[:begun] + told).strip()
