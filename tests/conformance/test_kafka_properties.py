"""Names of Kafka's properties: those that we know are Kafka's own, and so are those that hold a password."""

import re
import subprocess

from domain.configuration.kafka_properties import OTHERS, PASSWORDS
from playground.jars import installed_kafka
from playground.java import java_home

DEFINITION = re.compile(r'href="#brokerconfigs_([\w.]+)">.{0,4000}?<th>Type:</th><td>(\w+)</td>', re.DOTALL)


def test_names_and_passwords_are_those_of_kafkas_own_definition() -> None:
    """Its main method prints the page of all properties."""
    command = (str(java_home() / "bin" / "java"), "-cp", installed_kafka().class_path, "kafka.server.KafkaConfig")
    page = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    types = dict(DEFINITION.findall(page))
    assert {name for name, kind in types.items() if kind == "password"} == PASSWORDS
    assert {name for name, kind in types.items() if kind != "password"} == OTHERS
