"""From type hints to parameters, and from the texts of a call to values."""

import enum
import inspect
import json
import re
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .context import Context
from .errors import ToolError

# How much of an argument that does not fit is shown to the caller.
_SHOWN_CHARS = 60
# JSON text deeper than this is refused by the parser's own limit; said in our words.
_TOO_DEEP = "is nested too deeply"

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
_WORDS = {
    "string": "a text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array as JSON text",
    "object": "an object as JSON text",
}


@dataclass(frozen=True)
class Parameter:
    """One argument of a tool."""

    name: str
    description: str
    schema: dict[str, Any]
    hint: Any
    required: bool
    nullable: bool = False
    """Whether None is a value of it, and not the same as leaving it out."""

    @property
    def type(self) -> str:
        return self.schema.get("type", "any")


def parameters(function: Callable) -> tuple[list[Parameter], str | None]:
    """What a function takes: its arguments, and the name of the parameter that wants the call's Context."""
    hints = typing.get_type_hints(function, include_extras=True)
    said = _described(function)
    found, context = [], None
    for name, parameter in inspect.signature(function).parameters.items():
        where = f"{function.__name__}({name})"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"{where}: a tool's arguments have names; take each as an ordinary parameter")
        if name not in hints:
            raise TypeError(f"{where} has no type hint, from which its callers learn what to send")
        hint, extras = hints[name], ()
        if typing.get_origin(hint) is typing.Annotated:
            hint, *extras = typing.get_args(hint)
        if hint is Context:
            context = name
            continue
        bare, optional = _without_none(hint)
        schema = _schema(bare, where)
        nullable = optional or bare is Any or type(None) in typing.get_args(bare)
        for extra in extras:
            if isinstance(extra, dict):
                schema.update(extra)
        text = next((extra for extra in extras if isinstance(extra, str)), said.get(name, ""))
        has_default = parameter.default is not inspect.Parameter.empty
        found.append(Parameter(name, text, schema, bare, not (has_default or optional), nullable))
    return found, context


def description(function: Callable) -> str:
    """The docstring up to its list of arguments."""
    text = inspect.getdoc(function) or ""
    return re.split(r"^Args:\s*$", text, maxsplit=1, flags=re.MULTILINE)[0].strip()


def _described(function: Callable) -> dict[str, str]:
    """What the `Args:` of a docstring say, in Google's style."""
    parts = re.split(r"^Args:\s*$", inspect.getdoc(function) or "", maxsplit=1, flags=re.MULTILINE)
    found: dict[str, str] = {}
    name = None
    for line in parts[1].splitlines() if len(parts) > 1 else []:
        start = re.match(r"\s{1,4}(\w+)\s*:\s*(.*)$", line)
        if start:
            name = start[1]
            found[name] = start[2].strip()
        elif line.startswith("     ") and name:
            found[name] = f"{found[name]} {line.strip()}"
        elif line.strip() and not line.startswith(" "):
            break
    return found


def _without_none(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        rest = [part for part in typing.get_args(hint) if part is not type(None)]
        if len(rest) == 1:
            return rest[0], len(rest) < len(typing.get_args(hint))
    return hint, False


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _choices(hint: Any) -> list[Any] | None:
    """The values of a Literal, or the names of an Enum."""
    if typing.get_origin(hint) is typing.Literal:
        return list(typing.get_args(hint))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return [member.name for member in hint]
    return None


def _schema(hint: Any, where: str) -> dict[str, Any]:
    choices = _choices(hint)
    if choices is not None:
        kinds = {type(choice) for choice in choices}
        if len(kinds) != 1 or kinds.isdisjoint({str, int}):
            raise TypeError(f"{where}: the choices of one argument are all texts or all integers")
        return {"type": _SIMPLE[kinds.pop()], "enum": choices}
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        return {"type": "array", "items": _schema(args[0], where)}
    if origin is dict and args[0] is str:
        return {"type": "object", "additionalProperties": _schema(args[1], where)}
    if typing.is_typeddict(hint):
        fields = {name: _schema(_bare(field), where) for name, field in typing.get_type_hints(hint).items()}
        required = sorted(hint.__required_keys__)
        return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}
    if hint is Any:
        return {}
    if hint is type(None):
        return {"type": "null"}
    if _is_union(hint):
        return {"anyOf": [_schema(each, where) for each in args]}
    raise TypeError(
        f"{where}: {hint!r} cannot be told to a host; use str, int, float, bool, list, dict, TypedDict, Literal, an Enum, "
        "Any, or several of them with |"
    )


def _bare(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) in (typing.Required, typing.NotRequired) else hint


def parse(arguments_json: str) -> dict[str, Any] | None:
    """The arguments with their types, where the host sent them; None where it sent texts alone."""
    if not arguments_json:
        return None
    try:
        typed = json.loads(arguments_json, parse_constant=_no_constant)
    except RecursionError:
        raise ToolError(f"the arguments: their JSON {_TOO_DEEP}") from None
    except ValueError as error:
        raise ToolError(f"the arguments are no JSON: {error}") from None
    if not isinstance(typed, dict):
        raise ToolError("the arguments are no JSON object")
    return typed


def read(
    declared: list[Parameter], action: str, texts: dict[str, str], typed: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The values of a call's arguments: from `typed`, if the host sent it, where 7 is no "7"; from the texts otherwise. A
    ToolError says what does not fit."""
    names = {parameter.name for parameter in declared}
    given: dict[str, Any] = texts if typed is None else typed
    for name in given:
        if name not in names:
            takes = ", ".join(sorted(names)) or "no arguments"
            raise ToolError(f"unknown argument {_shown(name)}; {action} takes {takes}")
    values = {}
    for parameter in declared:
        if parameter.name in given and typed is None:
            values[parameter.name] = _value(parameter, texts[parameter.name])
        elif parameter.name in given and (given[parameter.name] is not None or parameter.nullable):
            values[parameter.name] = _typed_value(parameter, given[parameter.name])
        elif parameter.required:
            raise ToolError(f"argument {parameter.name!r} is missing")
    return values


def _typed_value(parameter: Parameter, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, str) and parameter.type not in ("string", "any"):
        # Models write "7" for 7; it is read as it was when it came as a text.
        return _value(parameter, value)
    try:
        return _checked(value, parameter.hint, parameter.schema)
    except _Misfit:
        raise _misfit(parameter, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) from None


def _value(parameter: Parameter, text: str) -> Any:
    kind = parameter.type
    if kind == "string":
        value: Any = text
    elif kind == "any":
        # JSON that the parameter takes is that; everything else is the text itself.
        try:
            return _checked(json.loads(text, parse_constant=_no_constant), parameter.hint, parameter.schema)
        except (ValueError, RecursionError, _Misfit):
            value = text
    else:
        try:
            value = json.loads(text, parse_constant=_no_constant)
        except RecursionError:
            raise ToolError(f"argument {parameter.name!r} {_TOO_DEEP}") from None
        except ValueError:
            raise _misfit(parameter, text) from None
    try:
        return _checked(value, parameter.hint, parameter.schema)
    except _Misfit:
        raise _misfit(parameter, text) from None


class _Misfit(Exception):
    pass


def _no_constant(_: str) -> Any:
    raise ValueError("NaN and Infinity are no JSON")


def _checked(value: Any, hint: Any, schema: dict[str, Any]) -> Any:
    """The value as its hint has it: what the schema declares is checked here, too, for hosts that check nothing."""
    if hint is Any:
        return value
    if hint is type(None):
        if value is None:
            return value
        raise _Misfit
    if _is_union(hint):
        for each, inner in zip(typing.get_args(hint), schema["anyOf"], strict=True):
            try:
                return _checked(value, each, inner)
            except _Misfit:
                continue
        raise _Misfit
    choices = _choices(hint)
    if choices is not None:
        if not any(value == choice and type(value) is type(choice) for choice in choices):
            raise _Misfit
        return hint[value] if isinstance(hint, type) else value
    kind = schema["type"]
    is_bool = isinstance(value, bool)
    if kind == "boolean" and is_bool:
        return value
    if kind == "integer" and not is_bool and (isinstance(value, int) or isinstance(value, float) and value.is_integer()):
        return _bounded(int(value), schema)
    # 1e999 is JSON, and infinite to a float.
    if kind == "number" and isinstance(value, (int, float)) and not is_bool and abs(value) <= sys.float_info.max:
        return _bounded(float(value), schema)
    if kind == "string" and isinstance(value, str):
        return value
    if kind == "array" and isinstance(value, list):
        item = (typing.get_args(hint) or (None,))[0]
        return value if item is None else [_checked(each, item, schema["items"]) for each in value]
    if kind == "object" and isinstance(value, dict):
        return _object(value, hint, schema)
    raise _Misfit


def _object(value: dict[str, Any], hint: Any, schema: dict[str, Any]) -> dict[str, Any]:
    if typing.is_typeddict(hint):
        fields = typing.get_type_hints(hint)
        if not set(schema["required"]) <= set(value) <= set(fields):
            raise _Misfit
        properties = schema["properties"]
        return {name: _checked(each, _bare(fields[name]), properties[name]) for name, each in value.items()}
    inner = typing.get_args(hint)
    if not inner:
        return value
    return {name: _checked(each, inner[1], schema["additionalProperties"]) for name, each in value.items()}


def _bounded(value: Any, schema: dict[str, Any]) -> Any:
    if value < schema.get("minimum", value) or value > schema.get("maximum", value):
        raise _Misfit
    return value


def _misfit(parameter: Parameter, text: str) -> ToolError:
    schema = parameter.schema
    if "enum" in schema:
        wanted = "one of " + ", ".join(str(choice) for choice in schema["enum"])
    elif "anyOf" in schema:
        wanted = " or ".join(str(each.get("type", "something")) for each in schema["anyOf"])
    else:
        wanted = _WORDS.get(parameter.type, "JSON")
        if "minimum" in schema:
            wanted += f" from {schema['minimum']}"
        if "maximum" in schema:
            wanted += f" to {schema['maximum']}"
    return ToolError(f"argument {parameter.name!r}: expected {wanted}, got {_shown(text)}")


def _shown(text: str) -> str:
    cut = text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
    return json.dumps(cut, ensure_ascii=False)
