"""Parameters of bytes: digests, and what is encrypted, are no text."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from lost_update_lab import Result

Trial = Callable[..., Result]
DIGEST = sha256(b"token").digest()


def token(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS token")
    sql.execute("CREATE TABLE token (digest bytea PRIMARY KEY, used boolean NOT NULL)")
    sql.execute("INSERT INTO token VALUES (%s, false)", [DIGEST])


def uses(lock: str, form: str, sql: Any) -> str:
    with sql.transaction():
        (used,) = sql.execute(f"SELECT used FROM token WHERE digest = {form} {lock}", [DIGEST]).fetchone()
        if used:
            return "used already"
        sql.execute(f"UPDATE token SET used = true WHERE digest = {form}", [DIGEST])
    return "used"


@pytest.mark.parametrize("form", ["%s", "%b"])
@pytest.mark.parametrize(("lock", "verdict"), [("FOR UPDATE", "kept"), ("", "violated")])
def test_a_digest_is_a_key(trial: Trial, lock: str, form: str, verdict: str) -> None:
    """It ended in a UnicodeDecodeError of the explorer's."""
    result = trial([(uses, lock, form)] * 2, setup=token, control=False)
    assert result.verdict == verdict
    told = any(DIGEST.hex() in step for step in result.alone["A"])
    assert told or form == "%b"
