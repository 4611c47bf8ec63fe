"""Our tables of records, held against the schemas in Kafka's own jars: 3.9.2 and the newest 4.x."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from domain.quorum_log.record_types import RecordType
from playground.jars import fetched_jars, installed_kafka
from spark.codec.metadata_schema import SCHEMAS, SchemaField

NEWEST_LOCK = Path(__file__).parents[2] / "playground" / "metadata_jars.lock.toml"


def schemas_in(jar: Path) -> dict[int, dict[str, Any]]:
    """The schemas of metadata records in a jar, by api key."""
    with zipfile.ZipFile(jar) as archive:
        files = [n for n in archive.namelist() if n.startswith("common/metadata/") and n.endswith(".json")]
        texts = [re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE) for name in files]
    return {schema["apiKey"]: schema for schema in map(json.loads, texts)}


def jar_of_3_9() -> Path:
    (jar,) = (installed_kafka().path / "libs").glob("kafka-metadata-*.jar")
    return jar


def jar_of_4() -> Path:
    (jar,) = fetched_jars(NEWEST_LOCK)
    return jar


def facts_of(field: SchemaField) -> dict[str, Any]:
    told = {"type": field.type, "since": field.since, "nullable": field.is_nullable, "tag": field.tag}
    return told | {"fields": {f.name: facts_of(f) for f in field.fields}}


def facts_in(schema: dict[str, Any]) -> dict[str, Any]:
    tag = schema.get("tag")
    told = {
        "type": schema["type"],
        "since": int(schema["versions"].removesuffix("+")),
        "nullable": "nullableVersions" in schema,
        "tag": None if tag is None else int(tag),
    }
    return told | {"fields": {_name(f): facts_in(f) for f in schema.get("fields", ())}}


def _name(schema: dict[str, Any]) -> str:
    return schema["name"][0].lower() + schema["name"][1:]


def default_in(schema: dict[str, Any]) -> Any:
    """Of a tagged field, as its type has it."""
    told = schema.get("default")
    if told is None:
        return () if schema["type"].startswith("[]") else 0
    return None if told == "null" else int(told)


def test_every_kind_of_the_newest_kafka_is_known_field_by_field() -> None:
    known = schemas_in(jar_of_4())
    assert known.keys() == SCHEMAS.keys()
    for key, schema in known.items():
        assert SCHEMAS[key].name == schema["name"]
        assert schema["validVersions"] in {f"0-{SCHEMAS[key].newest}", "0"}
        assert schema["flexibleVersions"] == "0+"
        ours = {field.name: facts_of(field) for field in SCHEMAS[key].fields}
        assert ours == {_name(f): facts_in(f) for f in schema["fields"]}
        assert list(ours) == [_name(f) for f in schema["fields"]], "in the order of their bytes"


def test_defaults_of_tagged_fields_are_those_of_kafka() -> None:
    tagged = 0
    for key, schema in schemas_in(jar_of_4()).items():
        defaults = {field.name: field.default for field in SCHEMAS[key].fields if field.tag is not None}
        assert defaults == {_name(f): default_in(f) for f in schema["fields"] if "tag" in f}
        tagged += len(defaults)
    assert tagged > 15


def test_kafka_3_9_has_the_same_table_with_fewer_versions() -> None:
    known = schemas_in(jar_of_3_9())
    assert SCHEMAS.keys() - known.keys() == {28}, "ClearElrRecord came with 4.0"
    for key, schema in known.items():
        newest = int(schema["validVersions"].rpartition("-")[2])
        ours = {field.name: facts_of(field) for field in SCHEMAS[key].fields if field.since <= newest}
        assert ours == {_name(f): facts_in(f) for f in schema["fields"]}


@pytest.mark.parametrize("key", sorted(SCHEMAS))
def test_a_tagged_field_never_stands_in_a_nested_structure(key: int) -> None:
    """What the decoder relies on for its defaults."""
    assert not [inner for field in SCHEMAS[key].fields for inner in field.fields if inner.tag is not None]


def test_the_kinds_of_records_are_those_of_kafkas_own_schemas() -> None:
    found = {schema["name"]: schema for schema in schemas_in(jar_of_3_9()).values()}
    named = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", n.removesuffix("Record")).upper(): s["apiKey"] for n, s in found.items()}
    assert named == {kind.name: kind.value for kind in RecordType if kind is not RecordType.CLEAR_ELR}, "as in 3.9"
    acls, removed = found["AccessControlEntryRecord"], found["RemoveAccessControlEntryRecord"]
    assert (acls["validVersions"], [f["type"] for f in acls["fields"]][:5]) == (
        "0",
        ["uuid", "int8", "string", "int8", "string"],
    )
    assert (removed["validVersions"], [f["type"] for f in removed["fields"]]) == ("0", ["uuid"])
    migration, configs = found["ZkMigrationStateRecord"], found["ConfigRecord"]
    assert (migration["validVersions"], [f["type"] for f in migration["fields"]]) == ("0", ["int8"])
    assert (configs["validVersions"], [f["type"] for f in configs["fields"]]) == ("0", ["int8", "string", "string", "string"])
