"""Generated Markdown is wrapped, and reads as before."""

from __future__ import annotations

from markdown_it import MarkdownIt

from lost_update_lab.telling.markdown import WIDTH, in_short_lines

WORDS = "a number of words, " * 9
TEXTS = {
    "a paragraph": WORDS,
    "an item of a list": f"- {WORDS}\n- short",
    "a numbered item": f"1. {WORDS}\n2. {WORDS}",
    "code that does not fit": f"{WORDS}`SELECT {WORDS}1` → `NULL`; `1 row`",
    "a plus between words": " + ".join(["`a hazard`"] * 20),
    "numbers": " 1. ".join(["x" * 9] * 20),
}


def rendered(text: str) -> str:
    return " ".join(MarkdownIt().enable("table").render(text).split())


def test_wrapped_it_reads_the_same() -> None:
    for what, text in TEXTS.items():
        short = in_short_lines(text)
        assert max(map(len, short.split("\n"))) <= WIDTH < max(map(len, text.split("\n"))), what
        assert rendered(short) == rendered(text), what


def test_a_command_stays_whole() -> None:
    command = "`python manage.py explore --replay replicated-as-published/l/a1g2a`"
    assert command in in_short_lines(f"**lost**, after a long enough introduction of some words: {command}")


def test_code_and_tables_stay() -> None:
    text = f"```text\n{WORDS}\n```\n| {WORDS} |\n    {WORDS}"
    assert in_short_lines(text) == text
