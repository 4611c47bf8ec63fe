"""Secrets from the worker's environment and from files, read anew each time, so that a rotated secret is used at once."""

import os
from pathlib import Path

from activities.ports.stores import Secret
from domain.errors import Permanent


class EnvironmentAndFileSecrets:
    """A `SecretStore` for `env:NAME` and `file:/path`. Errors name the reference, never the value."""

    def resolve(self, reference: str) -> Secret:
        kind, _, name = reference.partition(":")
        match kind:
            case "env":
                return _from_environment(reference, name)
            case "file":
                return _from_file(reference, Path(name))
            case _:
                raise Permanent(f"secret {reference!r}: unknown kind; expected env:NAME or file:/path")


def _from_environment(reference: str, name: str) -> Secret:
    if name not in os.environ:
        raise Permanent(f"secret {reference}: the activity worker has no such variable; set it and start the worker again")
    return Secret(os.environ[name])


def _from_file(reference: str, path: Path) -> Secret:
    """The file's text without its last line ending, which editors add."""
    try:
        text = path.read_text()
    except FileNotFoundError as error:
        raise Permanent(f"secret {reference}: no such file on the activity worker; create it") from error
    except (OSError, UnicodeDecodeError) as error:
        message = f"secret {reference}: cannot be read ({type(error).__name__}); it must be text that the worker may read"
        raise Permanent(message) from None if isinstance(error, UnicodeDecodeError) else error
    return Secret(text.removesuffix("\n").removesuffix("\r"))
