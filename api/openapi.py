"""The OpenAPI document. `make docs` writes it to `api/openapi.json`, which is committed; a test compares."""

import json
from pathlib import Path

from api.app import create_app
from api.description import Json
from api.running.temporal import Temporal
from api.settings import ApiSettings

DOCUMENT = Path(__file__).parent / "openapi.json"


def document() -> Json:
    """The document of this version. Connects to nothing."""
    settings = ApiSettings(ledger_url="sqlite:////nowhere/ledger.db")
    return create_app(settings, Temporal({})).openapi()


def text() -> str:
    """As it is committed."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(text(), encoding="utf-8")
