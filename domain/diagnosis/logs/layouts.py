"""Lines of other layouts in Kafka's own, `[2026-11-20 03:00:00,123] INFO what it says (who says it)`: they are judged alike.

Known are those of log4j that begin with a date and a level, in this order or the other, with threads and loggers between; JSON,
one object a line, and what runtimes of containers put around a line. All else stays as it is.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

LEVELS = r"(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b"
KAFKAS = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] " + LEVELS)
TIME = (
    r"\[?(?P<day>\d{4}[-/]\d\d[-/]\d\d)[T ](?P<time>\d\d:\d\d:\d\d)(?:[.,:](?P<part>\d{3})\d{0,6})?"
    r"(?: ?Z| ?[+-]\d\d:?\d\d| UTC)?\]?"
)
BETWEEN = r"(?:\s*\[[^\]]{0,80}\])*[\s:|-]*"
HEADS = (
    re.compile(rf"{TIME}{BETWEEN}[\[(]?{LEVELS}[\])]?[\s:|-]*"),
    re.compile(rf"[\[(]?{LEVELS}[\])]?[\s:|-]*{TIME}[\s:|-]*"),
)
LOGGER = re.compile(
    r"(?:\[[\w #./:-]{0,80}\]\s+)?\[?(?P<logger>(?:[\w$]+\.)+[\w$]+)(?<!Exception)(?<!Error)(?<!Fault)\]?"
    r"\s*(?::|-)\s+(?P<text>.*)"
)
COLOURS = re.compile(r"\x1b\[[\d;]*m")
OF_A_RUNTIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (?:stdout|stderr) [FP] ")
IN_JSON = {
    "level": ("level", "loglevel", "severity", "log.level"),
    "text": ("message", "msg"),
    "at": ("@timestamp", "timestamp", "time", "ts", "datetime", "date", "timemillis", "instant"),
    "logger": ("logger", "logger_name", "loggername", "log.logger"),
    "thrown": (
        "stack_trace",
        "stacktrace",
        "error.stack_trace",
        "extendedstacktrace",
        "thrown",
        "exception",
        "throwable",
        "error",
    ),
}
"""Names of what log4j's, logstash's and ECS' layouts call them, in small letters."""
MOST_SECONDS = 1e11
"""Since 1970: what is more are milliseconds."""


def in_kafkas_layout(lines: Sequence[str]) -> tuple[str, ...]:
    """JSON may have half a character in it, which nothing could be written down with."""
    return tuple(told.encode("utf-8", "replace").decode() for line in lines for told in _told(line))


def _told(line: str) -> Iterator[str]:
    if KAFKAS.match(line):
        yield line
        return
    bare = OF_A_RUNTIME.sub("", COLOURS.sub("", line))
    if bare.startswith("{") and (found := _object(bare)) is not None:
        yield from _of_object(found)
        return
    head = next(filter(None, (pattern.match(bare) for pattern in HEADS)), None)
    if head is None or KAFKAS.match(bare):
        yield bare
        return
    said = LOGGER.match(bare, head.end())
    words = f"{said['text']} ({said['logger']})" if said is not None else bare[head.end() :]
    yield f"[{head['day'].replace('/', '-')} {head['time']},{head['part'] or '000'}] {head['level']} {words}"


def _object(line: str) -> dict[str, object] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    parts = {key.lower(): value for key, value in found.items()} if isinstance(found, dict) else {}
    return parts if isinstance(parts.get("log"), str) or isinstance(_part(parts, "text"), str) else None


def _of_object(found: Mapping[str, object]) -> Iterator[str]:
    """What `docker logs` keeps has a line in it, and all others the parts of one."""
    if isinstance(whole := found.get("log"), str):
        yield from _told(whole.rstrip("\n"))
        return
    level, text = str(_part(found, "level") or "").upper(), str(_part(found, "text") or "")
    at, logger = _stamp(_part(found, "at")), _part(found, "logger")
    head = f"[{at}] {level} " if at else ""
    yield from (f"{head}{text} ({logger})" if logger else f"{head}{text}").splitlines()
    yield from _thrown(_part(found, "thrown"))


def _part(found: Mapping[str, object], what: str) -> object:
    """Its dots may stand for an object in an object."""
    for name in IN_JSON[what]:
        outer, _, inner = name.partition(".")
        within = found.get(outer)
        value = found.get(name) or (within.get(inner) if inner and isinstance(within, dict) else None)
        if value:
            return value
    return None


def _stamp(told: object) -> str:
    """Of text, of seconds or milliseconds since 1970, or of an `instant`; empty where it is none."""
    if isinstance(told, dict):
        told = told.get("epochSecond")
    if isinstance(told, int | float):
        is_time = 0 < told < MOST_SECONDS * 1000
        seconds = told / 1000 if is_time and told > MOST_SECONDS else told
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S},000" if is_time else ""
    found = re.match(TIME, str(told))
    return f"{found['day'].replace('/', '-')} {found['time']},{found['part'] or '000'}" if found is not None else ""


def _thrown(told: object) -> Iterator[str]:
    if isinstance(told, str):
        yield from told.splitlines()
    elif isinstance(told, dict):
        parts = {str(key).lower(): value for key, value in told.items()}
        whole = _part(parts, "thrown")
        if isinstance(whole, str):
            yield from whole.splitlines()
        else:
            kind = parts.get("name") or parts.get("exception_class") or parts.get("class") or "Exception"
            yield f"{kind}: {parts.get('message') or parts.get('exception_message') or ''}".removesuffix(": ")
