"""What a server of ZooKeeper has been given: its file, the dynamic one, its myid. A part of note_machine."""

from __future__ import annotations

import os
import re
from typing import Any

from activities.on_node.kernel import Found, Pairs, link, text

SERVER_FILE = "configuration file of its process"
CONFIGURATION = re.compile(r"\.(properties|cfg|conf)$")
OF_ZOOKEEPER = "org.apache.zookeeper."
SETTING = re.compile(r"\s*([^\s=:#!][^\s=:]*)\s*[=:\s]\s*(.*)")
CONTINUED = re.compile(r"\\\r?\n\s*")
OPEN_SETTINGS = re.compile(
    r"(tickTime|dataDir|dataLogDir|(secureC|c)lientPort(Address)?|server\.\d+|4lw\.commands\.whitelist"
    r"|(min|max)[A-Z]\w+|\w+(Limit|Timeout|Cnxns)(InKb|Ms)?|autopurge\.\w+|reconfigEnabled|standaloneEnabled|leaderServes"
    r"|readonlymode\.enabled|dynamicConfigFile|admin\.\w*[pP]ort|jute\.maxbuffer|snapCount|preAllocSize|electionAlg"
    r"|quorumListenOnAllIPs|metricsProvider\.\w+)$"
)
"""Of a server of ZooKeeper: which hold no secret."""


def server_settings(process: str, request: dict[str, Any]) -> Found:
    """Of a server of ZooKeeper: what is in the file that its command line ends in, in the one that this names, and its myid."""
    path = configuration_of(process) or request.get("config")
    if not path or not request.get("port"):
        return None
    lines = dict(settings_in(path))
    found = {SERVER_FILE: path if lines else f"{path}, and nothing can be read in it"}
    for place in (path, lines.get("dynamicConfigFile")):
        for name, value in settings_in(place) if place else ():
            found[f"{name} in {place}"] = value if OPEN_SETTINGS.match(name) else "(not shown)"
    number = f"{lines.get('dataDir', '')}/myid"
    return {**found, number: (text(number) or "nothing to be read").strip()[:20]} if "dataDir" in lines else found


def configuration_of(process: str) -> str | None:
    """A relative path is below where the process was started."""
    words = [word for word in (text(f"{process}/cmdline") or "").split("\0") if word] if process else []
    is_server = any(word.startswith(OF_ZOOKEEPER) for word in words)
    if not is_server or not CONFIGURATION.search(words[-1]):
        return None
    return os.path.normpath(os.path.join(link(f"{process}/cwd") or "/", words[-1]))  # noqa: PTH118


def settings_in(path: str) -> Pairs:
    """As java.util.Properties reads them."""
    for line in CONTINUED.sub("", text(path) or "").splitlines():
        found = SETTING.match(line)
        if found:
            yield found.group(1), found.group(2).strip()
