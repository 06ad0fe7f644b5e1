"""The annotation of a field that takes a part of this package or a user's own, from a file or from Python."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from discreet.contract import CONTRACTS, is_shipped
from discreet.part import PLAIN
from discreet.user_code import check_reference
from discreet.user_part import RESERVED, UserPart


class OwnPart:
    """Marks a union of parts that also takes a user's own: a table whose kind has a colon, or an object of a class.

    Annotated[A | B, Field(discriminator="kind"), OwnPart(Protocol)]
    """

    def __init__(self, protocol: type) -> None:
        self._contract = CONTRACTS[protocol]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        shipped = handler(source)
        return core_schema.no_info_wrap_validator_function(
            self._validate,
            shipped,
            serialization=core_schema.wrap_serializer_function_ser_schema(self._serialise, schema=shipped),
        )

    def _validate(self, value: Any, shipped: Callable[[Any], Any]) -> Any:
        if type(value) is UserPart:
            if value.contract is not self._contract:
                raise ValueError(f"must be a {self._contract.name}, and {value.kind} is a {value.contract.name}")
            return value
        if isinstance(value, Mapping):
            return self._reference(value) if ":" in str(value.get("kind")) else _validate_shipped(value, shipped)
        if is_shipped(type(value)) or type(value) in PLAIN:
            return shipped(value)
        return UserPart.wrap(self._contract, value)

    def _reference(self, table: Mapping[str, Any]) -> UserPart:
        arguments = {name: value for name, value in table.items() if name not in RESERVED}
        try:
            kind = check_reference(table["kind"])
        except ValueError as error:
            raise ValueError(f"kind {error}") from None
        return UserPart(self._contract, kind, arguments, table.get("sha256"))

    @staticmethod
    def _serialise(value: Any, shipped: Callable[[Any], Any]) -> Any:
        return value.table() if isinstance(value, UserPart) else shipped(value)


def _validate_shipped(table: Mapping[str, Any], shipped: Callable[[Any], Any]) -> Any:
    """Validate a part of this package. The error for an unknown kind mentions that one's own is possible."""
    try:
        return shipped(table)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] != "union_tag_invalid" or first["loc"]:
            raise
        message = "kind must be one of {kinds}, or your own as 'file.py:Class', and got '{kind}'"
        found = {"kinds": first["ctx"]["expected_tags"], "kind": first["ctx"]["tag"]}
        raise PydanticCustomError("unknown_kind", message, found) from None
