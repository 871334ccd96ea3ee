"""What a memoised server knows of an answer holds for every schedule. So whatever is executed is compared with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lost_update_lab.servers.mariadb.memoised import MariadbAnswer, MariadbAnswers
from lost_update_lab.servers.postgres.memoised import PostgresAnswer, PostgresAnswers
from lost_update_lab.servers.redis.memoised import COUNTED, RedisAnswers, RedisQuestion


class StayingAnswers(dict[Any, Any]):
    """Notes each answer that is another one than that which was known to the same question."""

    def __init__(self, changed: list[str]) -> None:
        super().__init__()
        self.changed = changed

    def __setitem__(self, question: Any, answer: Any) -> None:
        computed = isinstance(question, RedisQuestion) and any(word in question.sent for word in COUNTED)
        if (
            question in self
            and not computed
            and (before := counted(self[question])) != (now := counted(answer))
        ):
            self.changed.append(f"{before} … {now}")
        super().__setitem__(question, answer)


def counted(answer: Any) -> Any:
    """Without what makes no state: times by a server's own clock."""
    if isinstance(answer, PostgresAnswer):
        return answer._replace(everything=b"")
    if isinstance(answer, MariadbAnswer):
        return answer._replace(held=answer.held.contents if answer.held else None)  # type: ignore[arg-type]
    return answer


def watch(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The answers that change from now on."""
    changed: list[str] = []

    def watched(make: Callable[..., None]) -> Callable[..., None]:
        def made(answers: Any, *args: Any, **options: Any) -> None:
            make(answers, *args, **options)
            answers.known = StayingAnswers(changed)

        return made

    for kind in (PostgresAnswers, RedisAnswers, MariadbAnswers):
        monkeypatch.setattr(kind, "__init__", watched(kind.__init__))  # type: ignore[misc]
    return changed
