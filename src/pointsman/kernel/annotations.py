"""From Python's annotations to JSON Schema and back: the only place of the kernel that knows pydantic.

A field's annotation becomes the schema its values are judged by. A function's parameters name the fields it reads; if
one is annotated with more than JSON (a model, an enum, a time), the function is called with that, made from the JSON.
"""

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Annotated, Any, Literal, TypeAlias, Union, cast

from pydantic import StringConstraints, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, SchemaError

from pointsman.kernel import ingest, schema
from pointsman.kernel.definition import Schema
from pointsman.kernel.judges import compiled
from pointsman.types import Json

NonBlank: TypeAlias = Annotated[str, StringConstraints(pattern=r"\S")]
"""Text with something in it besides white space."""


class Unfit(Exception):
    """An annotation or default that cannot be kept as JSON. The message says why."""


def resolved(annotation: Any, names: Mapping[str, Any]) -> Any:
    """The type an annotation stands for. Written as text (also by `from __future__ import annotations`), it is looked
    up in its module: a name local to a function cannot be found there."""
    holder = type("Holder", (), {"__annotations__": {"it": annotation}})
    try:
        return typing.get_type_hints(holder, dict(names), include_extras=True)["it"]
    except NameError as error:
        raise Unfit(f"the type {error.name!r} is not a name of the module; a type local to a function cannot be resolved") from None
    except (TypeError, SyntaxError, AttributeError) as error:
        raise Unfit(f"its type cannot be read: {error}") from None


def schema_of(annotation: Any, mode: Literal["validation", "serialization"] = "validation") -> dict[str, Any]:
    if any(key is not str and key is not Any for key in _keys(annotation)):
        raise Unfit("the keys of a JSON object are text: write dict[str, …]")
    try:
        return _tidy(TypeAdapter(annotation).json_schema(mode=mode))
    except (PydanticUserError, SchemaError) as error:
        raise Unfit(f"its type has no JSON Schema: {str(error).splitlines()[0]}") from None


def _keys(annotation: Any) -> Iterator[Any]:
    """The types of the keys of every mapping in an annotation."""
    args = typing.get_args(annotation)
    if isinstance(origin := typing.get_origin(annotation), type) and issubclass(origin, Mapping) and args:
        yield args[0]
    for arg in args:
        yield from _keys(arg)


def _tidy(form: Any) -> Any:
    """Without the titles that pydantic derives from names, and closed: an object takes the members it lists, no others."""
    if not isinstance(form, dict):
        return form
    words = cast(dict[str, Any], form)
    tidy = {word: _tidied(word, value) for word, value in words.items() if word != "title"}
    if "properties" in tidy:
        tidy.setdefault("additionalProperties", False)
    return tidy


def _tidied(word: str, value: Any) -> Any:
    if word in ("properties", "$defs"):
        return {name: _tidy(part) for name, part in value.items()}
    if word in ("anyOf", "oneOf", "prefixItems"):
        return [_tidy(part) for part in value]
    return _tidy(value) if word in ("items", "additionalProperties") else value


def as_json(annotation: Any, value: Any) -> Json:
    """A default or a computed value as it is stored."""
    if not ingest.faults(value):
        return value
    try:
        return TypeAdapter(annotation).dump_python(value, mode="json", warnings=False)
    except (PydanticUserError, PydanticSerializationError, SchemaError, ValueError, RecursionError):
        raise Unfit("is not JSON and cannot be made JSON by its type") from None


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of a function and their types; `Any` where none is written."""
    if not inspect.isfunction(function) or function.__name__ == "<lambda>":
        raise Unfit("must be a plain function with a name of its own: it is bound by that name")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Unfit(f"{function.__name__} must be a plain function, not async and not a generator")
    listed = inspect.signature(function).parameters.values()
    if any(item.kind not in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY) for item in listed):
        raise Unfit(f"{function.__name__} must take each argument by its name, without *, ** or /")
    written = {item.name: Any if item.annotation is item.empty else item.annotation for item in listed}
    return {name: resolved(annotation, function.__globals__) for name, annotation in written.items()}


def returns(function: Callable[..., Any]) -> Any:
    """What a computed field's function returns."""
    annotation = inspect.signature(function).return_annotation
    if annotation is inspect.Signature.empty:
        raise Unfit(f"{function.__name__} must say what it returns: that is the field's type")
    return resolved(annotation, function.__globals__)


def takes_null(annotation: Any) -> bool:
    return annotation is object or schema.admits_null(schema_of(annotation))


def on_json(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it is called with stored values, by name."""
    makers = {name: TypeAdapter(kind).validate_python for name, kind in parameters(function).items() if not _is_json(kind)}
    if not makers:
        return function

    @wraps(function)
    def call(**given: Any) -> Any:
        return function(**{name: makers[name](value) if name in makers else value for name, value in given.items()})

    return call


def returning_json(function: Callable[..., Any], annotation: Any, form: Schema) -> Callable[..., Any]:
    """A computed field's function, whose value is as it is stored. A value of another type is an author's fault."""
    fits = compiled(form)
    dump = None if _is_json(annotation) else TypeAdapter[Any](annotation).dump_python

    @wraps(function)
    def call(**given: Any) -> Json:
        value = function(**given)
        value = dump(value, mode="json") if dump else value
        found = ingest.faults(value, "its value")
        fits(value, "its value", found)
        if found:
            raise TypeError(f"{function.__name__}: " + "; ".join(f"{path} {message}" for path, message in found))
        return value

    return call


_JSON = (str, int, float, bool, None, type(None), Any, object, list, dict)


def _is_json(annotation: Any) -> bool:
    """Whether JSON as it is parsed already is of this type."""
    if annotation in _JSON:
        return True
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _is_json(args[0])
    if origin is Literal:
        return all(type(option) in _JSON for option in args)
    return origin in (Union, types.UnionType, list, dict) and all(_is_json(arg) for arg in args)
