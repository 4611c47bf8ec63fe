"""What a node's start command gives Kafka besides the properties file: `--override key=value`, which counts before the file.

Sources: Kafka.scala, getPropsFromArgs; CommandLineUtils.parseKeyValueArgs; jopt-simple also takes one dash, and `=`.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise

from domain.observed.survey import Override
from domain.redaction import shown_name, shown_value

OPTION = re.compile(r"--?override(?:=(?P<joined>.*))?", re.DOTALL)
SHELL_TEXT = re.compile(r"\s--?override\b")


def overrides_in(command: Sequence[str]) -> dict[str, str]:
    """Values by key. The last of a key counts; one without a value is empty. A word that is a shell's text is split first."""
    words = [part for word in command for part in _words_in(word)]
    found: dict[str, str] = {}
    for word, after in pairwise([*words, ""]):
        if option := OPTION.fullmatch(word):
            key, _, value = (after if option["joined"] is None else option["joined"]).partition("=")
            found[key] = value
    return found


def _words_in(word: str) -> list[str]:
    if not SHELL_TEXT.search(word):
        return [word]
    try:
        return shlex.split(word)
    except ValueError:
        return word.split()


def told(specified: Mapping[str, str], running: Mapping[str, str]) -> tuple[Override, ...]:
    """Both as a survey keeps them: without the value of any key that may hold a secret."""
    given = {**running, **specified}
    return tuple(
        Override(key=shown_name(key, value), value=shown_value(key, value), is_specified=key in specified)
        for key, value in sorted(given.items())
    )
