"""The arguments of a function as a payload: an object of its arguments by name, and back."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Union

import msgspec

from .values import builtins, check, convert

LONGEST = 200
"""Bytes of a unique key that stay readable; a longer one is a hash."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class ArgumentError(TypeError):
    """Arguments that a task does not have, lacks, or that are of another type."""


class Signature:
    """What a function takes and returns. `given`: the class of a first parameter that is no argument: what
    runs the function provides it. One without an annotation is known by its name, `context`.

    Only what was given stands in a payload, so that a default that is changed holds for jobs that wait.
    """

    def __init__(self, function: Callable[..., Any], name: str, given: type) -> None:
        self.name = name
        found = inspect.signature(function)
        parameters = list(found.parameters.values())
        self.takes_given = bool(parameters) and self._is_given(function, parameters[0], given)
        if self.takes_given:
            parameters = parameters[1:]
        self.rest = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), None)
        self.more = next((one.name for one in parameters if one.kind is one.VAR_KEYWORD), None)
        self.types = {one.name: self._type(function, one.name, one.annotation) for one in parameters}
        parameters = [one.replace(annotation=_shown(one, self.types[one.name])) for one in parameters]
        self.signature = inspect.Signature(parameters)
        self.parameters = {one.name: one for one in parameters}
        try:
            self.result = self._type(function, "its result", found.return_annotation)
        except TypeError:
            self.result = Any
        self._names = [name for name in self.parameters if name != self.more]
        self._by_name = not {one.kind for one in parameters} - {
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            inspect.Parameter.KEYWORD_ONLY,
        }
        self._shape = self._struct()

    def arguments(self, args: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """The payload of a call; raises `ArgumentError` when the function cannot be called so."""
        try:
            found = dict(self.signature.bind(*args, **options).arguments)
        except TypeError as error:
            raise ArgumentError(f"{self.name}: {error}: its arguments are {self}") from None
        more = found.pop(self.more, {}) if self.more else {}
        if both := found.keys() & more.keys():
            raise ArgumentError(f"{self.name}: {both.pop()} cannot be an argument and one of **{self.more}")
        found.update(more)
        self._read(found)
        return found

    def call(self, payload: Any) -> tuple[Sequence[Any], dict[str, Any]]:
        """The arguments in a payload as the annotations want them; raises `ArgumentError`."""
        found = self._read(payload)
        if self._by_name:
            return (), found
        more = {name: found.pop(name) for name in found.keys() - self.parameters.keys()}
        bound = inspect.BoundArguments(self.signature, {**found, self.more: more} if self.more else found)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def unique_key(self, arguments: Mapping[str, Any], names: Sequence[str] | None) -> str:
        """A key for these arguments, or some of them by name; left out ones count with their defaults."""
        defaults = {one.name: one.default for one in self.parameters.values() if one.default is not one.empty}
        found = {**defaults, **arguments}
        if names is not None:
            found = {name: found.get(name) for name in names}
        text = json.dumps(builtins(found), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        key = f"{self.name}:{text}"
        return key if len(key.encode()) <= LONGEST else f"{self.name}:{sha256(key.encode()).hexdigest()}"

    def __str__(self) -> str:
        return str(self.signature)

    def _is_given(self, function: Any, parameter: inspect.Parameter, given: type) -> bool:
        if parameter.kind not in _POSITIONAL:
            return False
        if parameter.annotation is parameter.empty:
            return parameter.name == "context"
        kind = self._type(function, parameter.name, parameter.annotation, check_it=False)
        return isinstance(kind, type) and issubclass(kind, given)

    def _type(self, function: Any, what: str, annotation: Any, check_it: bool = True) -> Any:
        if annotation is inspect.Parameter.empty:
            return Any
        try:
            if isinstance(annotation, str):
                annotation = eval(annotation, getattr(inspect.unwrap(function), "__globals__", {}))
            if check_it:
                check(annotation)
        except NameError as error:
            raise TypeError(
                f"{self.name}: the annotation of {what} cannot be read, {error}: "
                "import it where the function is, also at run time"
            ) from error
        except TypeError as error:
            raise TypeError(f"{self.name}: {what} cannot be read from a payload: {error}") from error
        return annotation

    def _struct(self) -> Any:
        """What reads all arguments at once. Those that were not given are UNSET."""
        fields: list[Any] = []
        for name in self._names:
            parameter = self.parameters[name]
            kind: Any = self.types[name]
            if name == self.rest:
                kind = list.__class_getitem__(kind)
            own: dict[str, Any] = {"name": name}
            if parameter.default is not parameter.empty or name == self.rest:
                kind, own["default"] = Union[kind, msgspec.UnsetType], msgspec.UNSET  # noqa: UP007
            fields.append((f"_{len(fields)}", kind, msgspec.field(**own)))
        return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=self.more is None)

    def _read(self, payload: Any) -> dict[str, Any]:
        if not isinstance(payload, dict):
            raise ArgumentError(
                f"{self.name}: the payload of a task is an object of its arguments {self}, "
                f"not {type(payload).__name__}"
            )
        try:
            struct = convert(payload, self._shape)
            found = dict(zip(self._names, msgspec.structs.astuple(struct)))
            if self.more:
                kind = self.types[self.more]
                found.update({name: convert(payload[name], kind) for name in payload.keys() - found.keys()})
        except ValueError as error:
            text = str(error).replace("`$.", "`")
            raise ArgumentError(f"{self.name}: {text}: its arguments are {self}") from None
        return {name: value for name, value in found.items() if value is not msgspec.UNSET}


def _shown(parameter: inspect.Parameter, kind: Any) -> Any:
    """A type as the signature tells it: not as text, when there is one."""
    return parameter.empty if parameter.annotation is parameter.empty else kind
