"""Markdown in short lines, which read as the same text. A generated page is read as source, too."""

from __future__ import annotations

import re
from collections.abc import Iterator

WIDTH = 100
_WORDS = re.compile(r"(?:`[^`]*`|\S)+")
#: a word that would begin something else than a line of text, if it came first
_BEGINS = re.compile(r"[-+*>=|]+$|#|\d+[.)]$")
_ITEM = re.compile(r"\d+\. |- ")


def wrapped(text: str) -> Iterator[str]:
    """Yield one paragraph, or one item of a list, in lines of at most WIDTH characters."""
    mark = _ITEM.match(text)
    indent, line = " " * len(mark[0]) if mark else "", ""
    for word in _words(text):
        if line and len(line) + 1 + len(word) > WIDTH - 4 and not _BEGINS.match(word):
            yield line
            line = f"{indent}{word}"
        else:
            line = f"{line} {word}" if line else word
    yield line


def _words(text: str) -> Iterator[str]:
    """Code stays whole where it fits into a line: a command is copied."""
    for word in _WORDS.findall(text):
        yield from [word] if len(word) <= WIDTH - 10 else word.split()


def in_short_lines(text: str) -> str:
    """Wrap what is longer than WIDTH, besides rows of tables and code."""
    lines, code = list[str](), False
    for line in text.split("\n"):
        code ^= line.startswith("```")
        whole = len(line) <= WIDTH or code or line.startswith(("|", "    "))
        lines += [line] if whole else wrapped(line)
    return "\n".join(lines)
