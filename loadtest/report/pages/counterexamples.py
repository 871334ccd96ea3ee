"""docs/counterexamples.md: for each strategy the smallest schedule that breaks it, or how far the explorer looked.

`manage.py counterexamples report/explore.json` writes it between two marks in the page; `--check` executes every
schedule of the page again, on real servers. A test reads the page back and says when it no longer fits the code: a
strategy that it has not, an id of something else, or a claim that a schedule contradicts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os.path import relpath
from typing import Any, NamedTuple

from ledger.addresses import BASE_DIR
from ledger.strategies import STRATEGIES, find
from loadtest.explorer.brief import brief
from loadtest.explorer.campaign import Campaign
from loadtest.explorer.explored import HAZARDS
from loadtest.explorer.job import Job
from loadtest.report.explorer_table import ended
from loadtest.report.pages.reference import textbook_file
from loadtest.verdict.claims import agrees, claims
from loadtest.verdict.words import Word

PATH = BASE_DIR / "docs" / "counterexamples.md"
BEGIN, END = "<!-- counterexamples: begin -->", "<!-- counterexamples: end -->"
NO_FAULT = "no fault"
WITHOUT_A_WITHDRAWAL = """Two deposits, and no withdrawal: of `check-then-decrement` (sells what is not there) and
`optimistic-value` (ABA) this shows nothing, and they claim nothing.
"""
_COMMAND = "python manage.py explore --replay "
_SHOWN = re.compile(
    r"\*\*([a-z]+)\*\*, ([a-z `+-]+), (\d+) steps?: `" + re.escape(_COMMAND) + r"([^`]+)`", re.MULTILINE
)
_HEAD = re.compile(r"^### (\S+)$", re.MULTILINE)
_TOLD = re.compile(r"^1\. (.*)$", re.MULTILINE)
_LISTED = re.compile(r"^(?:\| |- )\[`([^`]+)`\]", re.MULTILINE)

Result = Mapping[str, Any]


class Shown(NamedTuple):
    """A schedule of the page. `faults`: "no fault", or the hazards that it takes; `told`: its sentences, if any."""

    strategy: str
    word: str
    faults: str
    steps: int
    id: str
    told: tuple[str, ...] = ()


# -- writing --------------------------------------------------------------------------------------------------------


def section(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return what stands between the marks. Of several runs the last one that has a strategy counts."""
    found = {each["strategy"]: each for report in reports for each in report["results"]}
    results = [found[slug] for slug in STRATEGIES if slug in found]
    broken = [each for each in results if _examples(each)]
    kept = [each for each in results if each["verdict"] == Word.KEPT]
    out = [each for each in results if each["verdict"] == Word.NOT_RUN]
    open_ = [each for each in results if each not in [*broken, *kept, *out]]
    parts = [
        _about(reports, results),
        "## Broken, each by its smallest schedule\n",
        "\n".join(_index(broken)),
    ]
    parts += ["\n".join(_broken(each)) for each in broken]
    parts += ["## Exhausted, and kept\n", WITHOUT_A_WITHDRAWAL, "\n".join(_kept(kept))]
    if open_:
        parts += ["## Undecided\n", "".join(f"- {_link(each)}: {each['cause']}.\n" for each in open_)]
    if out:
        parts += ["## Out of the explorer's reach\n", "".join(f"- {_link(r)}: {r['reason']}.\n" for r in out)]
    return "\n".join(parts)


def _about(reports: Sequence[Mapping[str, Any]], results: Sequence[Result]) -> str:
    where = reports[-1]["environment"]
    ids = sum(len(_examples(each)) for each in results)
    return (
        "Made by `python manage.py counterexamples FILE…` from what `python manage.py explore` wrote"
        f" ({len(results)} strategies, {ids} schedules, {where['cores']} cores, commit {str(where['commit'])[:12]}).\n"
    )


def _examples(result: Result) -> list[dict[str, Any]]:
    """Its counterexamples that came out the same ten times, that of its verdict first."""
    found = [each for each in result["counterexamples"].values() if each["id"]]
    return sorted(found, key=lambda each: Word(each["verdict"]).gravity)


def _index(broken: Sequence[Result]) -> Iterator[str]:
    """One line for each word and what it takes, gravest and without a fault first."""
    groups: dict[tuple[int, bool, str], list[str]] = {}
    for each in broken:
        example = _examples(each)[0]
        key = Word(example["verdict"]).gravity, _faults(example) != NO_FAULT, _faults(example)
        groups.setdefault(key, []).append(each["strategy"])
    for (gravity, _, faults), slugs in sorted(groups.items()):
        yield f"- {list(Word)[gravity]}, {faults}: {', '.join(f'[{slug}](#{slug})' for slug in slugs)}"
    yield ""


def _broken(result: Result) -> Iterator[str]:
    first, *others = _examples(result)
    yield f"### {result['strategy']}\n"
    yield f"[{find(result['strategy']).title}]({_page(result['strategy'])})\n"
    yield from (f"1. {sentence}" for sentence in brief(first))
    yield f"\n{_command(first)}"
    yield from (f"\n{_command(each)}" for each in others)
    yield f"\n{_searched(result)}\n"


def _command(example: Mapping[str, Any]) -> str:
    steps = len(example["steps"])
    told = f"**{example['verdict']}**, {_faults(example)}, {steps} step{'s' * (steps != 1)}"
    return f"{told}: `{_COMMAND}{example['id']}`"


def _faults(example: Mapping[str, Any]) -> str:
    hazards = [each for each in example["faults"] if each != str(HAZARDS[None])]
    return " + ".join(f"`{each}`" for each in hazards) or NO_FAULT


def _searched(result: Result) -> str:
    seen = f"{result['schedules']:,} schedules{_bounds(result)}"
    kept = [f"`{hazard}`" for hazard, word in result["under"].items() if word == Word.KEPT]
    if result["exhausted"]:
        needs_a_fault = result["under"][str(HAZARDS[None])] == Word.KEPT
        return f"Exhausted: {seen}." + (f" Kept under {', '.join(kept)}." if needs_a_fault else "")
    return f"{ended(result).capitalize()} after {seen}: there may be more."


def _bounds(result: Result) -> str:
    """What differs from the usual bounds, which the page's head tells."""
    usual = Job(strategy="").as_json()
    given = {
        name: result.get(name, value) for name, value in usual.items() if name not in ("budget", "until")
    }
    told = [f"{name} {value}" for name, value in given.items() if value != usual[name]]
    return f" ({', '.join(told)})" if told else ""


def _kept(results: Sequence[Result]) -> Iterator[str]:
    yield "| strategy | schedules | seconds | faults that struck it | cannot touch it |"
    yield "|---|---:|---:|---|---|"
    for each in results:
        fired, never = (", ".join(each[name]) or "none" for name in ("fired", "not_applicable"))
        seen = f"{each['schedules']:,}{_bounds(each)}"
        yield f"| {_link(each)} | {seen} | {each['seconds']:.1f} | {fired} | {never} |"
    yield ""


def _link(result: Result) -> str:
    return f"[`{result['strategy']}`]({_page(result['strategy'])})"


def _page(slug: str) -> str:
    return relpath(textbook_file(STRATEGIES[slug]), PATH.parent)


# -- reading --------------------------------------------------------------------------------------------------------


def read(page: str) -> list[Shown]:
    """Return the schedules of the page, each with the strategy under whose heading it stands."""
    found = []
    parts = _HEAD.split(_between(page))[1:]
    for strategy, text in zip(parts[::2], parts[1::2], strict=True):
        told = tuple(_TOLD.findall(text))
        for word, faults, steps, name in _SHOWN.findall(text):
            found.append(Shown(strategy, word, faults.replace("`", ""), int(steps), name, told))
            told = ()  # only the first one is told
    return found


def _between(page: str) -> str:
    return page.partition(BEGIN)[2].partition(END)[0]


def complaints(page: str) -> list[str]:
    """Return in what the page does not fit the code. Nothing: it does."""
    text, shown = _between(page), read(page)
    placed = [*_HEAD.findall(text), *_LISTED.findall(text)]
    told = [f"{slug}: {placed.count(slug)} places, not 1" for slug in STRATEGIES if placed.count(slug) != 1]
    told += [f"{slug}: no such strategy" for slug in placed if slug not in STRATEGIES]
    told += [
        f"{slug}: a heading, and no schedule"
        for slug in _HEAD.findall(text)
        if slug not in {each.strategy for each in shown}
    ]
    if text.count(_COMMAND) != len(shown):
        told.append(f"{text.count(_COMMAND)} commands, of which {len(shown)} can be read")
    return told + [wrong for each in shown if each.strategy in STRATEGIES for wrong in _wrong(each)]


def _wrong(shown: Shown) -> Iterator[str]:
    try:
        job = Job.of_replay_id(shown.id)
    except ValueError as error:
        yield str(error)
        return
    if (job.strategy, job.expected) != (shown.strategy, shown.word):
        yield f"{shown.id} is no {shown.word} of {shown.strategy}"
    hazards = [] if shown.faults == NO_FAULT else shown.faults.split(" + ")
    if agrees(claims(find(shown.strategy).withstands, hazards), Word(shown.word)) is False:
        yield f"{shown.strategy} claims to withstand {shown.faults}, and {shown.id} is {shown.word}"


# -- executing again ------------------------------------------------------------------------------------------------


def shortest(shown: Iterable[Shown], most: int | None) -> list[Shown]:
    """Return the `most` schedules with the fewest steps, each of another strategy; without `most`, all."""
    if most is None:
        return list(shown)
    first: dict[str, Shown] = {}
    for each in sorted(shown, key=lambda each: each.steps):
        first.setdefault(each.strategy, each)
    return list(first.values())[:most]


def replayed(shown: Sequence[Shown], lanes: int) -> Iterator[tuple[Shown, str]]:
    """Execute each schedule again on servers of its own. Yield it as it comes, with "", or what is otherwise now."""
    of = {Job.of_replay_id(each.id): each for each in shown}
    for job, answer in Campaign(list(of), lanes).replays():
        yield of[job], _otherwise(of[job], answer)


def _otherwise(shown: Shown, answer: Mapping[str, Any]) -> str:
    if not answer["reproduced"]:
        why = f"{answer['verdict']}: {answer.get('cause', '')}".rstrip(": ")
        return f"does not come to {shown.word} again, but to {why}"
    if answer["counterexample"]["opening"] is None:
        return "is another schedule when it is executed once more, to be looked at"
    told = brief(answer["counterexample"])
    new = [sentence for sentence in told if sentence not in shown.told]
    return f"is told otherwise now: {' '.join(new) or told}" if shown.told and (*told,) != shown.told else ""
