"""A summary in Markdown shows the user's names and values, whatever is in them."""

from __future__ import annotations

from dataclasses import replace

from markdown_it import MarkdownIt

from lost_update_lab.scenarios.reports import markdown
from lost_update_lab.scenarios.result import Result

ODD = "a|b <script>alert(1)</script> & `code` <b>\nnew line"
FOUND = Result(name=ODD, verdict="violated", sentence=ODD, bounds="bounds", exhausted=True, schedules=3)


def test_a_name_and_a_sentence_are_words_and_nothing_else() -> None:
    made = markdown([FOUND, replace(FOUND, part="x|<i>")])
    outside = made.replace(str(FOUND), "")
    assert [
        tag for tag in ("<script>", "<b>", "<i>", "a|b", "`code`") if tag in outside.split("```")[0]
    ] == []
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(made)
    assert html.count("<tr>") == 3
    assert html.count("<td>") == 8
    assert "<td>a|b &lt;script&gt;alert(1)&lt;/script&gt; &amp; `code` &lt;b&gt; new line</td>" in html
    assert html.count("<script>") == html.count("<b>") == html.count("<i>") == 0


def test_backticks_do_not_end_the_code() -> None:
    ended = replace(FOUND, sentence="````\n</details><script>")
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown([ended]))
    assert "<script>" not in html
    assert html.count("<pre>") == 1
