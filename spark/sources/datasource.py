"""Any source as a Python DataSource of Spark: the rows of one kind as a DataFrame, for whoever wants to ask Spark about them.

    session.dataSource.register(RowsDataSource)
    session.read.format("keeperless").option("kind", "partition").option("source", spec).option("digest_key", "file:/…").load()

`spec` is a `SourceSpec` as JSON; `encoder_secret` and `tasks` are options too. Rows only, no journal. The engine does not come
this way: Spark plans such a read in a new Python process each time, which takes longer than a whole check.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pydantic import TypeAdapter
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from domain.drift.records import KINDS
from domain.errors import Permanent
from spark.job import SourceSpec
from spark.rows import schema_of
from spark.sources.build import Recipe
from spark.sources.source import Split

DEFAULT_TASKS = "2"


@dataclass
class SplitPartition(InputPartition):  # type: ignore[misc]
    split: Split


class RowsDataSource(DataSource):  # type: ignore[misc]
    @classmethod
    def name(cls) -> str:
        return "keeperless"

    def schema(self) -> StructType:
        return from_arrow_schema(schema_of(self._kind()))

    def reader(self, schema: StructType) -> "RowsReader":
        spec = TypeAdapter[SourceSpec](SourceSpec).validate_json(self.options["source"])
        recipe = Recipe(spec, self.options.get("digest_key", ""), self.options.get("encoder_secret"))
        return RowsReader(recipe, self._kind(), int(self.options.get("tasks", DEFAULT_TASKS)), to_arrow_schema(schema))

    def _kind(self) -> str:
        kind = str(self.options.get("kind"))
        if kind not in KINDS:
            raise Permanent(f"the option kind is {kind!r}, it has to be one of {', '.join(KINDS)}")
        return kind


@dataclass
class RowsReader(DataSourceReader):  # type: ignore[misc]
    """`columns`: as Spark wants them, which knows no binary of a fixed size."""

    recipe: Recipe
    kind: str
    tasks: int
    columns: pa.Schema

    def partitions(self) -> list[InputPartition]:
        return [SplitPartition(split) for split in self.recipe.build().splits(self.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A source may have several kinds in a split: it is asked for this one only."""
        for rows in self.recipe.build().read(partition.split, frozenset([self.kind])):
            if not rows.is_journal:
                yield rows.batch.cast(self.columns)
