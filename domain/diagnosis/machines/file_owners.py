"""Signs that something else writes a node's properties file: what the file says of itself, what the start command does to it.

What is quoted is the sign itself and no other word of the line, so that no secret is in it.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence

from domain.observed.parts import ObservedPart

BANNER = re.compile(
    r"any changes to this file will be [a-z ]{0,40}(?:ignored|overwritten|lost)"
    r"|(?:maintained|managed|controlled|generated|deployed|rendered|written) (?:by|with|via|from)"
    r" (?:ansible|puppet|chef|salt(?:stack)?|terraform|strimzi|confluent|cloudera|ambari|helm|cfengine|consul-template|jinja2?)"
    r"|(?:ansible|puppet|chef|salt)[ -](?:managed|controlled)"
    r"|(?:auto(?:matically)?[ -]?generated)"
    r"|do not (?:edit|modify|change)(?: (?:this file|by hand|manually))?"
    r"|(?:local |manual |your |any )?(?:changes|edits|modifications)[a-z ]{0,30} will be (?:over(?:written|ridden)|lost)",
    re.IGNORECASE,
)
"""In a comment."""
PLACEHOLDER = re.compile(
    r"\$\{strimzi\w+:[\w./-]*(?::[\w.-]*)?\}|[\w-]*-placeholder\b|\$\{[A-Z][A-Z0-9_]*\}|\{\{ ?[\w.]* ?\}\}|<%=? ?[\w.@]* ?%>"
)
"""In a value: what a launcher puts another one in the place of. `${file:…}` of Kafka's own config providers is none."""
COMMENT = re.compile(r"\s*[#!](.*)")
PROPERTIES, QUOTES = "{properties}", "\"'"
SHELL_TEXT = re.compile(r"\s")
LAUNCHERS = ("/etc/confluent/docker/", "/opt/bitnami/scripts/", "/etc/kafka/docker/", "/opt/kafka/kafka_run.sh")
"""Of images that make the file from the environment at every start: Confluent, Bitnami, Apache, Strimzi."""
COPIES = re.compile(r"(?:^|\s)(cp|mv|install|rsync|ln|tee|sed)\s")
EDITS_IN_PLACE = re.compile(r"\s(?:-\w*i|--in-place)")
REDIRECTS = re.compile(r">>?\s*[\"']?([^\s\"';&|<>]+)")
COMMANDS = re.compile(r"&&|\|\||[;|\n]")


class Sign(ObservedPart):
    """`where`: the file and its line; `says`: the sign that was found there."""

    where: str
    says: str


def signs_in_file(path: str, text: str, *, is_edited: bool = True) -> tuple[Sign, ...]:
    """Signs in a properties file: placeholders in its values and, if we are to edit it, banners in its comments."""
    found = ((number, _sign_in(line, is_edited=is_edited)) for number, line in enumerate(text.splitlines(), 1))
    return tuple(Sign(where=f"line {number} of {path}", says=says) for number, says in found if says is not None)


def _sign_in(line: str, *, is_edited: bool) -> str | None:
    comment = COMMENT.match(line)
    if comment and not is_edited:
        return None
    found = BANNER.search(comment[1]) if comment else PLACEHOLDER.search(line)
    return None if found is None else found[0].strip()


def signs_in_command(command: Sequence[str], path: str) -> tuple[Sign, ...]:
    """Signs in a start command: an image's launcher, and a shell's text that writes the properties file at `path`."""
    found = [word for word in command[:1] if word.startswith(LAUNCHERS)]
    for number, word in enumerate(command):
        if SHELL_TEXT.search(word):
            found += (says for line in word.splitlines() for says in _writes(line, _names(path, command[number + 1 :], 0)))
    return tuple(Sign(where="the start command", says=says) for says in found)


def signs_in_script(script: str, text: str, path: str, arguments: Sequence[str]) -> tuple[Sign, ...]:
    """Signs in a script that is started with these arguments: commands that write the file."""
    names = _names(path, arguments, 1)
    return tuple(
        Sign(where=f"line {number} of {script}", says=says)
        for number, line in enumerate(text.splitlines(), 1)
        for says in _writes(line, names)
    )


def _names(path: str, arguments: Sequence[str], first: int) -> frozenset[str]:
    """What the file goes by there: its path, the placeholder for it, and the parameters of the shell that hold it."""
    numbers = [str(number) for number, word in enumerate(arguments, first) if word in {path, PROPERTIES}]
    return frozenset({path, PROPERTIES, *(f"${n}" for n in numbers), *(f"${{{n}}}" for n in numbers)})


def _writes(line: str, names: frozenset[str]) -> Iterator[str]:
    """As `cp … server.properties`: the last word of a command is where it copies to."""
    for part in COMMANDS.split("" if COMMENT.match(line) else line):
        redirected = [target for target in REDIRECTS.findall(part) if _is_it(target, names)]
        program, words = COPIES.search(part), REDIRECTS.sub("", part).split()
        if redirected:
            yield f"> {redirected[0]}"
        elif program and _is_it(words[-1], names) and (program[1] != "sed" or EDITS_IN_PLACE.search(part)):
            yield f"{program[1]} … {words[-1].strip(QUOTES)}"


def _is_it(word: str, names: frozenset[str]) -> bool:
    """Also by its name alone, for its folder may be a variable."""
    bare = word.strip(QUOTES)
    return bare in names or posixpath.basename(bare) in {posixpath.basename(name) for name in names if name.startswith("/")}
