"""Reads a request's JSON body. What cannot be stored or counted is refused here, with a 4xx that says why."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest
from ninja.errors import HttpError
from ninja.parser import Parser


class StrictParser(Parser):
    """Accepts only JSON in UTF-8, without NUL characters, lone surrogates or very deep nesting."""

    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type != "application/json":
            raise HttpError(415, "send JSON, with Content-Type: application/json")
        try:
            body = json.loads(request.body, parse_constant=_no_number)
            _storable(body)
        except (ValueError, RecursionError) as error:
            raise HttpError(400, f"cannot read the body as JSON: {error}") from error
        return body


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _storable(value: Any) -> None:
    """Raise ValueError for text that no database column can hold."""
    if isinstance(value, str):
        value.encode()  # a lone surrogate raises UnicodeEncodeError, which is a ValueError
        if "\0" in value:
            raise ValueError("a text contains a NUL character")
    elif isinstance(value, dict):
        for key, item in value.items():
            _storable(key)
            _storable(item)
    elif isinstance(value, list):
        for item in value:
            _storable(item)
