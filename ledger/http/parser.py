"""Reads a request's JSON body. What cannot be stored or counted is refused here, with a 4xx that says why."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest
from ninja.errors import HttpError
from ninja.parser import Parser

#: nothing that the API takes has more than five levels
DEEPEST = 20


class StrictParser(Parser):
    """Accepts only JSON in UTF-8, without NUL characters, lone surrogates or very deep nesting."""

    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type != "application/json":
            raise HttpError(415, "send JSON, with Content-Type: application/json")
        try:
            body = json.loads(request.body, parse_constant=_no_number, object_pairs_hook=_once)
            _storable(body, DEEPEST)
        except (ValueError, RecursionError) as error:
            raise HttpError(400, f"cannot read the body as JSON: {error}") from error
        return body


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of a key that comes twice, clients and servers take different values: nobody knows what was meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key in found if sum(key == other for other, _ in pairs) > 1)
        raise ValueError(f"the key {twice[:40]!r} comes twice in one object")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _storable(value: Any, levels: int) -> None:
    """`levels`: how much deeper it may go. Raise ValueError for text that no database column can hold."""
    if levels < 0:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels")
    if isinstance(value, str):
        value.encode()  # a lone surrogate raises UnicodeEncodeError, which is a ValueError
        if "\0" in value:
            raise ValueError("a text contains a NUL character")
    elif isinstance(value, dict):
        for key, item in value.items():
            _storable(key, levels)
            _storable(item, levels - 1)
    elif isinstance(value, list):
        for item in value:
            _storable(item, levels - 1)
