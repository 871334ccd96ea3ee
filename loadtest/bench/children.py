"""A contender's process: it waits for an order, works, and answers."""

from __future__ import annotations

import json
import multiprocessing
import select
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

ANSWER = 60.0  # seconds to wait for an answer, beyond the duration of the work


class ChildFailed(RuntimeError):
    """A contender's process raised an error or ended. The message is its last output."""


class Forked:
    """Runs `work(order)` in a forked process. Orders and answers can be any picklable values."""

    def __init__(self, prepare: Callable[[], Callable[[Any], Any]]) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._pipe, prepare), daemon=True)
        self._process.start()
        theirs.close()

    def tell(self, order: Any) -> None:
        with suppress(OSError):  # it has ended: its last output is the answer
            self._pipe.send(order)

    def answer(self, work: float = 0.0) -> Any:
        """Return its answer to work of this many seconds. Raises ChildFailed."""
        try:
            if not self._pipe.poll(work + ANSWER):
                raise ChildFailed(f"no answer {ANSWER:g} s after the time of its work")
            failed, answer = self._pipe.recv()
        except (EOFError, OSError):
            raise ChildFailed("the process ended") from None
        if failed:
            raise ChildFailed(answer)
        return answer

    def close(self) -> None:
        with suppress(OSError):
            self._pipe.send(None)
        self._process.join(1.0)
        self._pipe.close()
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _serve(pipe: Any, parents: Any, prepare: Callable[[], Callable[[Any], Any]]) -> None:
    """Serve orders. `parents`: the parent's end of the pipe, inherited by the fork.

    While any process has it open, the parent's death goes unnoticed. The last child notices it first and ends, and
    then the previous one notices.
    """
    parents.close()
    try:
        work = prepare()
        while (order := pipe.recv()) is not None:
            pipe.send((False, work(order)))
    except (EOFError, KeyboardInterrupt):
        return
    except Exception as error:  # noqa: BLE001  the parent needs to know every error
        pipe.send((True, f"{type(error).__name__}: {error}"))


class Foreign:
    """The same in a Python of its own, with lines of JSON, for libraries that cannot be installed in this one."""

    def __init__(self, python: Path, script: Path, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [str(python), str(script), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, order: Any) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()

    def answer(self, work: float = 0.0) -> Any:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], work + ANSWER)[0]:
            self._process.kill()
            raise ChildFailed(f"no answer {ANSWER:g} s after the time of its work")
        line = self._process.stdout.readline()
        if not line:
            raise ChildFailed(f"its process ended with code {self._process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


Child = Forked | Foreign


@contextmanager
def crew(*preparations: Callable[[], Callable[[Any], Any]]) -> Iterator[list[Forked]]:
    """Several forked processes, which end with the block."""
    with ExitStack() as stack:
        forked = []
        for prepare in preparations:
            forked.append(Forked(prepare))
            stack.callback(forked[-1].close)
        yield forked
