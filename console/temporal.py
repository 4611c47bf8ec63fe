"""The connection of a worker to Temporal, in Temporal's own settings."""

import os
import re

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig

from console.polls import Polls
from console.program import CannotStart

LOCAL = "localhost:7233"
SAID = re.compile(r'message: "([^"]+)"')
"""What the system or the server says, inside what the SDK prints of it."""


async def connected(polls: Polls) -> Client:
    """A client of the Temporal that `TEMPORAL_…` variables and profiles name. Raises `CannotStart`. `polls`: counts those that
    fail."""
    try:
        config = ClientConfig.load_client_connect_config()
    except (RuntimeError, ValueError, OSError) as error:
        raise CannotStart(
            f"Temporal's settings cannot be read: {error}. Correct TEMPORAL_… or its configuration file."
        ) from error
    config.setdefault("target_host", LOCAL)
    try:
        return await Client.connect(**config, data_converter=pydantic_data_converter, runtime=polls.runtime)
    except (RuntimeError, ValueError) as error:  # All that the SDK has for "no connection".
        said = (SAID.findall(str(error)) or [str(error)])[-1]
        sentence = f"Temporal does not answer at {config['target_host']} ({said}). Start it, or set TEMPORAL_ADDRESS."
        raise CannotStart(sentence, os.EX_UNAVAILABLE) from error
