"""Maven's own settings, as far as they say where the central repository really is: its mirror, for machines that must use one.

Source: https://maven.apache.org/guides/mini/guide-mirror-settings.html
"""

from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, parse

from domain.errors import Permanent

SETTINGS = Path.home() / ".m2" / "settings.xml"
OF_CENTRAL = frozenset({"*", "external:*", "central"})


def mirror_of_central(settings: Path = SETTINGS) -> str | None:
    """The address that Maven would use instead of its central repository; of several the first, as Maven does."""
    if not settings.exists():
        return None
    try:
        root = parse(settings).getroot()  # noqa: S314 - the user's own file
    except ParseError as error:
        raise Permanent(f"{settings} is not XML ({error}): Maven would not read it either. Correct it") from error
    mirrors = [_fields(mirror) for mirror in root.iterfind("{*}mirrors/{*}mirror")]
    return next((mirror["url"] for mirror in mirrors if _is_of_central(mirror.get("mirrorOf", "")) and mirror.get("url")), None)


def _fields(mirror: Element) -> dict[str, str]:
    """Tag and text of each child, with or without the namespace that newer files declare."""
    return {field.tag.rpartition("}")[2]: (field.text or "").strip() for field in mirror}


def _is_of_central(mirror_of: str) -> bool:
    """`mirrorOf` is a list with exceptions: `*,!central` is everything else."""
    names = {name.strip() for name in mirror_of.split(",")}
    return "!central" not in names and bool(names & OF_CENTRAL)
