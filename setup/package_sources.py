"""Where packages come from: what pip is told on this machine, said again in the words of uv and of Python's HTTP clients.

pip reads its files and PIP_… variables, uv reads UV_… and SSL_CERT_FILE, jgo (which fetches the jars) REQUESTS_CA_BUNDLE.
Somebody who has set up pip for a mirror, a proxy or a certificate authority has said enough. Values may hold passwords:
they go from environment to environment and are never printed.
"""

import ast
import ssl
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_WORDS = {
    # pip's option: (uv's variable, what uv puts between several values)
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "timeout": ("UV_HTTP_TIMEOUT", ""),
    "default-timeout": ("UV_HTTP_TIMEOUT", ""),
    "proxy": ("ALL_PROXY", ""),
}
_SECTIONS = ("global", "install", ":env:")
"""pip's own order: the later one wins."""


def pip_options(python: str = sys.executable) -> dict[str, str]:
    """pip's settings for `pip install`, from its files and its variables. Without a pip there are none."""
    listed = subprocess.run(
        [python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return parse_config_list(listed.stdout) if listed.returncode == 0 else {}


def parse_config_list(listing: str) -> dict[str, str]:
    """`section.option='value'` per line, as `pip config list` prints it."""
    by_section: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in listing.splitlines():
        name, _, value = line.partition("=")
        section, _, option = name.rpartition(".")
        if section in by_section and value:
            by_section[section][option] = str(ast.literal_eval(value))
    return {option: value for section in _SECTIONS for option, value in by_section[section].items() if value.strip()}


def for_our_tools(pip: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Variables to add to `environment`. What is set there already stays: it was said to the tool itself."""
    wanted = {
        variable: separator.join(_usable(option, pip[option])) if separator else pip[option]
        for option, (variable, separator) in _WORDS.items()
        if option in pip
    }
    if "extra-index-url" in pip:
        # As pip does: the best version of all indexes. Safe here, because every file is pinned by its hash.
        wanted["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    wanted |= _certificates(pip, environment)
    return {name: value for name, value in wanted.items() if value and name not in environment}


def _usable(option: str, values: str) -> list[str]:
    """A folder of wheels that is not there is nothing to pip, and an error to uv."""
    if option != "find-links":
        return values.split()
    return [value for value in values.split() if not value.startswith("/") or Path(value).exists()]


def _certificates(pip: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """One bundle for all tools; where none is named, the machine's own, as pip does."""
    bundle = environment.get("SSL_CERT_FILE") or pip.get("cert") or ""
    bundle = bundle or environment.get("REQUESTS_CA_BUNDLE") or environment.get("CURL_CA_BUNDLE") or ""
    if bundle:
        return {"SSL_CERT_FILE": bundle, "REQUESTS_CA_BUNDLE": bundle}
    machines = ssl.get_default_verify_paths().cafile
    return {"SSL_CERT_FILE": machines, "REQUESTS_CA_BUNDLE": machines} if machines and Path(machines).is_file() else {}
