"""A request that is read as the kind of migration that it names has it: with the kind's policy, and what the kind can want."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, GetCoreSchemaHandler, create_model
from pydantic_core import CoreSchema, core_schema

from domain.checks.acceptance import why_not_acceptable
from domain.kinds import Kind, Kinds
from domain.policy import MigrationPolicy, why_not_to_be_met


@dataclass(frozen=True)
class ByKind:
    """Belongs into the `Annotated` of a model with `kind` and `policy`: a body is read as the model of its kind.

    Pydantic's own tagged union would name the kind in the place of each error, as if it was a field.
    """

    models: Mapping[str, type[BaseModel]]
    of_no_kind: type[BaseModel]
    """Says which kinds there are."""

    @classmethod
    def of(cls, model: type[BaseModel], kinds: Kinds) -> "ByKind":
        names = tuple(kinds)
        fields: dict[str, Any] = {"kind": (Literal[names], ...)}
        of_no_kind: type[BaseModel] = create_model(model.__name__, __base__=model, **fields)
        return cls({name: _model_of(model, kind) for name, kind in kinds.items()}, of_no_kind)

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        choices = {name: handler.generate_schema(model) for name, model in self.models.items()}
        only = next(iter(choices.values()))
        shape = only if len(choices) == 1 else core_schema.tagged_union_schema(choices, "kind")
        return core_schema.no_info_plain_validator_function(self._read, json_schema_input_schema=shape)

    def _read(self, body: object) -> BaseModel:
        kind = body.get("kind") if isinstance(body, dict) else None
        model = self.models.get(kind) if isinstance(kind, str) else None
        return (model or self.of_no_kind).model_validate(body)


def _model_of(model: type[BaseModel], kind: Kind) -> type[BaseModel]:
    fields: dict[str, Any] = {"kind": (Literal[kind.name], ...), "policy": (_asked_policy(kind), kind.policy())}
    field = model.model_fields["wanted"]
    fields["wanted"] = (kind.wanted, ...) if field.is_required() else (kind.wanted | None, None)
    name = "".join(part.capitalize() for part in kind.name.split("-")) + model.__name__
    made: type[BaseModel] = create_model(name, __base__=model, __doc__=model.__doc__, **fields)
    return made


def _asked_policy(kind: Kind) -> Any:  # noqa: ANN401 - a type that is made here
    """The kind's policy, as somebody may ask for it."""

    def acceptable(policy: MigrationPolicy) -> MigrationPolicy:
        codes = (accepted.code for accepted in policy.accepted_findings)
        whys = [*dict.fromkeys(why_not_acceptable(code, kind.finding_codes) for code in codes)]
        unknown = [gate for gate in policy.approvers if gate not in kind.gates]
        whys += [f"approvers: {gate} is not a gate. Gates: {', '.join(kind.gates)}." for gate in unknown]
        if text := " ".join(filter(None, whys)) or why_not_to_be_met(policy):
            raise ValueError(text)
        return policy

    return Annotated[kind.policy, AfterValidator(acceptable)]
