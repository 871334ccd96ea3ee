"""Values as Python source: what a recorded call was given, so that a scenario can give it again.

A name of the user's is written as `«module:Name»`. writing.py makes an import and a plain name of it.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import FrameType
from typing import Any
from uuid import UUID

IMPORTED_NAME = re.compile(r"«([\w.]+):([\w.]+)»")
_REPR = (Decimal, datetime, date, time, timedelta, UUID)
#: what SQLAlchemy calls it
MARIADB_DIALECTS = ("mysql", "mariadb")
#: a form as a test client sends it, and the same in one part
PARTS, FORM = "multipart/form-data", "application/x-www-form-urlencoded"


class CannotBeWritten(ValueError):
    """There is no source for this value. The message says for what."""


def written(value: Any) -> str | None:
    """The value as Python source. None: it has none."""
    try:
        return source(value)
    except Exception:  # noqa: BLE001  (a property of the user's may raise anything)
        return None


def source(value: Any) -> str:
    """Raises CannotBeWritten."""
    if isinstance(value, Enum):
        return (
            f"{_named(type(value))}.{value.name}" if value.name else f"{_named(type(value))}({value.value!r})"
        )
    if isinstance(value, _REPR):
        return repr(value)
    if isinstance(value, int | str) and not isinstance(value, bool):
        return repr(int(value) if isinstance(value, int) else str(value))
    if isinstance(value, list | tuple | set | frozenset | Mapping) and not hasattr(value, "_fields"):
        return _collection(value)
    if isinstance(value, type):
        return _named(value)
    if found := _json(value) or _client(value) or _row(value) or _request(value) or _instance(value):
        return found
    try:
        if ast.literal_eval(repr(value)) == value:
            return repr(value)
    except (ValueError, SyntaxError, TypeError):
        pass
    raise CannotBeWritten(type(value).__qualname__)


def _collection(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{source(k)}: {source(v)}' for k, v in value.items())}}}"
    inside = ", ".join(source(each) for each in (sorted(value, key=repr) if _unordered(value) else value))
    if isinstance(value, list):
        return f"[{inside}]"
    if isinstance(value, tuple):
        return f"({inside}{',' * (len(value) == 1)})"
    made = f"{{{inside}}}" if value else "set()"
    return f"frozenset({made})" if isinstance(value, frozenset) else made


def _unordered(value: Any) -> bool:
    return isinstance(value, set | frozenset)


def _named(of: type) -> str:
    """The name of a class, if it can be imported."""
    if "<" in of.__qualname__ or of.__module__ in ("__main__", "builtins"):
        raise CannotBeWritten(f"{of.__qualname__}, a class that no module offers")
    return f"«{of.__module__}:{of.__qualname__}»"


def _client(value: Any) -> str:
    """A connection, or a session: each worker gets its own, to the explorer's servers."""
    kinds = [f"{each.__module__}.{each.__qualname__}" for each in type(value).__mro__]
    if "redis.client.Redis" in kinds:
        decode = value.get_connection_kwargs().get("decode_responses", False)
        return f'redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses={decode})'
    if "psycopg.Connection" in kinds or "psycopg.connection.Connection" in kinds:
        return f'psycopg.connect(os.environ["DATABASE_URL"], autocommit={value.autocommit})'
    if "pymysql.connections.Connection" in kinds:
        return f'mariadb.connect(os.environ["DATABASE_URL"], autocommit={value.get_autocommit()})'
    if "sqlalchemy.orm.session.Session" in kinds:
        dialect = getattr(getattr(value.bind, "dialect", None), "name", "")
        driver = "mysql+pymysql" if dialect in MARIADB_DIALECTS else "postgresql+psycopg"
        engine = f'«sqlalchemy:create_engine»("{driver}://", creator=connect)'
        return f"«sqlalchemy.orm:Session»({engine})"
    return ""


def _json(value: Any) -> str:
    """As psycopg wraps it for a column of JSON. Which function writes it, does not count."""
    kind = type(value)
    if kind.__module__ != "psycopg.types.json":
        return ""
    text = (value.dumps or json.dumps)(value.obj)
    return f"«psycopg.types.json:{kind.__name__}»({source(json.loads(text))})"


def _row(value: Any) -> str:
    """A row of Django's. (One of SQLAlchemy's belongs to a session: call_of.)"""
    if (meta := getattr(value, "_meta", None)) is not None and getattr(value, "pk", None) is not None:
        return f"apps.get_model({meta.label!r}).objects.get(pk={source(value.pk)})"
    return ""


def _request(value: Any) -> str:
    """A request of Django's, as its test client makes one."""
    if not all(hasattr(type(value), name) for name in ("get_full_path", "body", "get_signed_cookie")):
        return ""
    user = vars(value).get("_cached_user")  # `user` itself may ask the database
    who = "" if user is None or user.is_anonymous else f", user={source(user)}"
    body, kind = (_form(value), FORM) if value.content_type == PARTS else (value.body, value.content_type)
    return f"request({value.method!r}, {value.get_full_path()!r}, {body!r}, {kind!r}{who})"


def _form(request: Any) -> bytes:
    """What a form in several parts holds: a middleware may have read its body already."""
    if request.FILES:
        raise CannotBeWritten("a request with an uploaded file")
    return str(request.POST.urlencode()).encode()


def _instance(value: Any) -> str:
    """An object that its class makes again from what it holds: a dataclass, a named tuple, a model of pydantic, or one
    that keeps each argument of its constructor under the argument's name."""
    made = type(value)
    if dataclasses.is_dataclass(value):
        given = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
    elif hasattr(value, "_fields"):
        given = value._asdict()
    elif hasattr(made, "model_validate"):
        return f"{_named(made)}.model_validate({source(value.model_dump())})"
    elif hasattr(made, "__mapper__") or made.__module__ == "builtins":
        return ""
    else:
        given = _kept(value)
    return f"{_named(made)}({', '.join(f'{name}={source(each)}' for name, each in given.items())})"


def _kept(value: Any) -> dict[str, Any]:
    """What the constructor was given, if the object still holds it. Raises CannotBeWritten."""
    made, held = type(value), getattr(value, "__dict__", {})
    names = list(inspect.signature(made).parameters.values()) if made.__init__ is not object.__init__ else []
    found = {}
    for each in names:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            continue
        place = next((name for name in (each.name, f"_{each.name}") if name in held), None)
        if place is None:
            raise CannotBeWritten(f"{made.__qualname__}, which does not keep its {each.name!r}")
        found[each.name] = held[place]
    if not names and held:
        raise CannotBeWritten(f"{made.__qualname__}, which holds what its constructor was not given")
    return found


def call_of(frame: FrameType) -> str:
    """How the frame's function was called, as an expression. Raises CannotBeWritten, which says why there is none."""
    code, module = frame.f_code, frame.f_globals.get("__name__", "")
    if "<" in code.co_qualname:
        raise CannotBeWritten(f"{code.co_qualname} is a function inside of another one, or has no name")
    if code.co_flags & 0x0C and any(frame.f_locals.get(name) for name in _open(frame)):
        raise CannotBeWritten(f"{code.co_qualname} was given *args or **keywords")
    names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    operation = f"«{module}:{code.co_qualname}»"
    if "." in code.co_qualname and names and names[0] in ("self", "cls"):
        operation = f"{_argument(frame, names.pop(0))}.{code.co_name}"
    told = list(_arguments(frame, names))
    clients = any("connect(" in each or "Session»(" in each for each in told)
    return f"call({', '.join([operation, *told])})" if clients else f"{operation}({', '.join(told)})"


def _open(frame: FrameType) -> Iterator[str]:
    code = frame.f_code
    at = code.co_argcount + code.co_kwonlyargcount
    yield from code.co_varnames[at : at + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)]


def _arguments(frame: FrameType, names: list[str]) -> Iterator[str]:
    """The session first: rows of SQLAlchemy are asked of it."""
    given = {name: frame.f_locals.get(name) for name in names}
    session = next((name for name, value in given.items() if "Session»" in _client(value)), "")
    if session:
        yield f"{session}=(session := {_client(given.pop(session))})"
    for name, value in given.items():
        state: Any = getattr(value, "_sa_instance_state", None)
        if session and state is not None:
            if not (key := state.identity):
                raise CannotBeWritten(f"its argument {name!r} is a row that is not stored yet")
            yield f"{name}=session.get({_named(type(value))}, {source(key)})"
        else:
            yield f"{name}={_argument(frame, name)}"


def _argument(frame: FrameType, name: str) -> str:
    try:
        return source(frame.f_locals.get(name))
    except CannotBeWritten as error:
        raise CannotBeWritten(
            f"its argument {name!r} is no value that can be written down: {error}"
        ) from None
