"""pip's configuration, said again to uv and to Python's HTTP clients."""

import os
import sys
from pathlib import Path

import pytest

from setup.package_sources import for_our_tools, parse_config_list, pip_options

MIRROR = "https://me:secret@mirror.example/simple"


def test_a_later_section_wins_and_other_commands_do_not_count() -> None:
    listing = "\n".join(
        (
            ":env:.index-url='https://from-a-variable.example/simple'",
            "global.index-url='https://from-a-file.example/simple'",
            "global.cert='/ca.pem'",
            "download.timeout='1'",
            "install.timeout='90'",
        )
    )
    assert parse_config_list(listing) == {
        "index-url": "https://from-a-variable.example/simple",
        "cert": "/ca.pem",
        "timeout": "90",
    }


def test_pip_itself_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "pip.conf"
    config.write_text(f"[global]\nindex-url = {MIRROR}\nfind-links =\n  /one\n  /two\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://more.example/simple")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    told = pip_options(sys.executable)
    assert told["index-url"] == MIRROR
    assert told["find-links"].split() == ["/one", "/two"]
    assert told["extra-index-url"] == "https://more.example/simple"


def test_a_python_without_pip_has_no_options() -> None:
    assert pip_options("/bin/false") == {}


def test_every_option_gets_its_variable(tmp_path: Path) -> None:
    pip = {
        "index-url": MIRROR,
        "extra-index-url": "https://a.example/simple\nhttps://b.example/simple",
        "find-links": f"{tmp_path}\n/no/such/folder https://wheels.example/",
        "trusted-host": "mirror.example",
        "proxy": "http://proxy.example:3128",
        "timeout": "90",
        "cert": "/ca.pem",
    }
    assert for_our_tools(pip, {}) == {
        "UV_DEFAULT_INDEX": MIRROR,
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": f"{tmp_path},https://wheels.example/",
        "UV_INSECURE_HOST": "mirror.example",
        "ALL_PROXY": "http://proxy.example:3128",
        "UV_HTTP_TIMEOUT": "90",
        "SSL_CERT_FILE": "/ca.pem",
        "REQUESTS_CA_BUNDLE": "/ca.pem",
    }


def test_what_was_said_to_a_tool_itself_stays() -> None:
    said = {"UV_DEFAULT_INDEX": "https://mine.example/simple", "SSL_CERT_FILE": "/mine.pem"}
    added = for_our_tools({"index-url": MIRROR, "cert": "/pips.pem"}, said)
    assert added == {"REQUESTS_CA_BUNDLE": "/mine.pem"}


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_a_bundle_named_to_one_client_serves_all(variable: str) -> None:
    environment = {variable: "/ca.pem"}
    assert (environment | for_our_tools({}, environment)).items() >= {
        ("SSL_CERT_FILE", "/ca.pem"),
        ("REQUESTS_CA_BUNDLE", "/ca.pem"),
    }


def test_without_a_bundle_the_machines_own_is_used() -> None:
    added = for_our_tools({}, {})
    assert added == {} or os.path.isfile(added["SSL_CERT_FILE"])  # noqa: PTH113 - a path from OpenSSL, as a string
