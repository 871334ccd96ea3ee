"""docs/counterexamples.md: for each strategy the smallest schedule that breaks it, or how far the explorer looked.

`manage.py counterexamples report/explore.json` merges a run into docs/data/counterexamples.json, and writes the page
from it, between two marks. A strategy that was never explored is shown as not measured. `--check` executes every
schedule of the page again, on real servers. A test fails if the page is stale, if an id belongs to something else, or
if a schedule contradicts a claim.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os.path import relpath
from typing import Any, NamedTuple

from ledger.addresses import BASE_DIR
from ledger.strategies import STRATEGIES, find
from loadtest.findings.brief import brief
from loadtest.findings.explored import HAZARD_OF
from loadtest.findings.job import Job
from loadtest.report.explorer_table import ended
from loadtest.report.pages import measured
from loadtest.report.pages.reference import textbook_file
from loadtest.verdict.claims import agrees, claims
from loadtest.verdict.words import Word

PATH = BASE_DIR / "docs" / "counterexamples.md"
DATA = measured.FOLDER / "counterexamples.json"
BEGIN, END = "<!-- counterexamples: begin -->", "<!-- counterexamples: end -->"
NO_FAULT = "no fault"
WITHOUT_A_WITHDRAWAL = """\
There are two deposits and no withdrawal. So this shows nothing about `check-then-decrement` (it
oversells) and `optimistic-value` (ABA); both claim nothing.
"""
_COMMAND = "python manage.py explore --replay "

#: the part of a result of explore.json that the page needs
Entry = Mapping[str, Any]
#: executes the schedules of these jobs again, and yields the answers as they arrive (`Campaign.replays`)
Replay = Callable[[Sequence[Job]], Iterator[tuple[Job, dict[str, Any]]]]


class Shown(NamedTuple):
    """A schedule of the page. `faults`: the hazards that it needs. `told`: its sentences, if any."""

    strategy: str
    word: str
    faults: tuple[str, ...]
    steps: int
    id: str
    told: tuple[str, ...] = ()


# -- measuring ------------------------------------------------------------------------------------------------------


def merged(runs: measured.Runs, report: Mapping[str, Any]) -> measured.Runs:
    """Return `runs` with the results of one more explore.json. Third-party locks are not on the page."""
    found = {each["strategy"]: entry(each) for each in report["results"] if each["strategy"] in STRATEGIES}
    return measured.merged(measured.kept_only(runs, STRATEGIES), report["environment"], found)


def entry(result: Mapping[str, Any]) -> Entry:
    """Return the part of a result of explore.json that the page needs."""
    if result["verdict"] == Word.NOT_RUN:
        return {"verdict": str(Word.NOT_RUN), "reason": result["reason"], "counterexamples": []}
    under = result["under"]
    never_alone = under.get(str(HAZARD_OF[None])) != Word.KEPT
    return {
        "verdict": result["verdict"],
        "cause": result.get("cause", ""),
        "schedules": result["schedules"],
        "seconds": round(result["seconds"], 1),
        "bounds": _bounds(result),
        "ended": ended(result),
        "kept_under": [] if never_alone else [hazard for hazard, word in under.items() if word == Word.KEPT],
        "fired": list(result["fired"]),
        "not_applicable": list(result["not_applicable"]),
        "counterexamples": _examples(result),
    }


def _bounds(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bounds that differ from the default ones."""
    usual = json.loads(
        json.dumps(Job(strategy="").as_json())
    )  # a tuple is a list after a round trip through JSON
    given = {
        name: result.get(name, value) for name, value in usual.items() if name not in ("budget", "until")
    }
    return {name: value for name, value in given.items() if value != usual[name]}


def _examples(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return its counterexamples that were reproduced ten times. The page tells the first one, that of its verdict."""
    found = [each for each in result["counterexamples"].values() if each["id"]]
    found.sort(key=lambda each: Word(each["verdict"]).gravity)
    return [
        {
            "id": each["id"],
            "verdict": each["verdict"],
            "faults": [hazard for hazard in each["faults"] if hazard != str(HAZARD_OF[None])],
            "steps": len(each["steps"]),
            "told": brief(each),
        }
        for each in found
    ]


# -- writing --------------------------------------------------------------------------------------------------------


def section(runs: measured.Runs) -> str:
    """Return the text between the marks."""
    found = measured.everything(runs)
    results = {slug: found[slug] for slug in STRATEGIES if slug in found}
    broken = {slug: each for slug, each in results.items() if each["counterexamples"]}
    kept = {slug: each for slug, each in results.items() if each["verdict"] == Word.KEPT}
    out = {slug: each for slug, each in results.items() if each["verdict"] == Word.NOT_RUN}
    rest = {slug: each for slug, each in results.items() if slug not in {**broken, **kept, **out}}
    parts = [_about(runs), "## Broken: the smallest schedules\n", "\n".join(_index(broken))]
    parts += ["\n".join(_broken(slug, each)) for slug, each in broken.items()]
    parts += ["## Exhausted and kept\n", WITHOUT_A_WITHDRAWAL, "\n".join(_kept(kept))]
    if rest:
        parts += ["## Undecided\n", "".join(f"- {_link(s)}: {each['cause']}.\n" for s, each in rest.items())]
    if out:
        told = "".join(f"- {_link(slug)}: {each['reason']}.\n" for slug, each in out.items())
        parts += ["## Out of the explorer's reach\n", told]
    if missing := [slug for slug in STRATEGIES if slug not in found]:
        parts += [f"## {measured.NOT_MEASURED.capitalize()}\n", "".join(f"- {_link(s)}\n" for s in missing)]
    return "\n".join(parts)


def _about(runs: measured.Runs) -> str:
    ids = sum(len(each["counterexamples"]) for each in measured.everything(runs).values())
    return (
        "Made by `python manage.py counterexamples FILE…` from what `python manage.py explore` wrote\n"
        f"({ids} schedules; {measured.provenance(runs, 'strategies')}).\n"
    )


def _index(broken: Mapping[str, Entry]) -> Iterator[str]:
    """Yield one line for each word and the faults that it needs, gravest and without faults first."""
    groups: dict[tuple[int, bool, str], list[str]] = {}
    for slug, each in broken.items():
        example = each["counterexamples"][0]
        key = Word(example["verdict"]).gravity, bool(example["faults"]), _faults(example)
        groups.setdefault(key, []).append(slug)
    for (gravity, _, faults), slugs in sorted(groups.items()):
        yield f"- {list(Word)[gravity]}, {faults}: {', '.join(f'[{slug}](#{slug})' for slug in slugs)}"
    yield ""


def _broken(slug: str, found: Entry) -> Iterator[str]:
    first, *others = found["counterexamples"]
    yield f"### {slug}\n"
    yield f"[{find(slug).title}]({_page(slug)})\n"
    yield from (f"1. {sentence}" for sentence in first["told"])
    yield f"\n{_command(first)}"
    yield from (f"\n{_command(each)}" for each in others)
    yield f"\n{_searched(found)}\n"


def _command(example: Mapping[str, Any]) -> str:
    steps = example["steps"]
    told = f"**{example['verdict']}**, {_faults(example)}, {steps} step{'s' * (steps != 1)}"
    return f"{told}: `{_COMMAND}{example['id']}`"


def _faults(example: Mapping[str, Any]) -> str:
    return " + ".join(f"`{each}`" for each in example["faults"]) or NO_FAULT


def _searched(found: Entry) -> str:
    seen = f"{found['schedules']:,} schedules{_within(found)}"
    if found["ended"] == "exhausted":
        kept = ", ".join(f"`{hazard}`" for hazard in found["kept_under"])
        return f"Exhausted: {seen}." + (f" Kept under {kept}." if kept else "")
    return f"{found['ended'].capitalize()} after {seen}: there may be more."


def _within(found: Entry) -> str:
    told = ", ".join(f"{name} {value}" for name, value in found["bounds"].items())
    return f" ({told})" if told else ""


def _kept(kept: Mapping[str, Entry]) -> Iterator[str]:
    yield "| strategy | schedules | seconds | faults that struck it | cannot touch it |"
    yield "|---|---:|---:|---|---|"
    for slug, each in kept.items():
        fired, never = (", ".join(each[name]) or "none" for name in ("fired", "not_applicable"))
        seen = f"{each['schedules']:,}{_within(each)}"
        yield f"| {_link(slug)} | {seen} | {each['seconds']:.1f} | {fired} | {never} |"
    yield ""


def _link(slug: str) -> str:
    return f"[`{slug}`]({_page(slug)})"


def _page(slug: str) -> str:
    return relpath(textbook_file(STRATEGIES[slug]), PATH.parent)


# -- checking -------------------------------------------------------------------------------------------------------


def shown(runs: measured.Runs) -> list[Shown]:
    """Return the schedules of the page, grouped by strategy."""
    found = measured.everything(runs)
    return [
        Shown(
            strategy,
            each["verdict"],
            tuple(each["faults"]),
            each["steps"],
            each["id"],
            tuple(each.get("told", ())),
        )
        for strategy in STRATEGIES
        for each in found.get(strategy, {"counterexamples": ()})["counterexamples"]
    ]


def complaints(page: str, runs: measured.Runs) -> list[str]:
    """Return what is wrong: the page is stale, or the data contradict the code. [] if all is well."""
    told = [f"{slug}: no such strategy" for slug in measured.everything(runs) if slug not in STRATEGIES]
    told += [wrong for each in shown(runs) for wrong in _wrong(each)]
    if not told and measured.placed(page, BEGIN, END, section(runs)) != page:
        told.append("it is stale: run `python manage.py counterexamples`")
    return told


def _wrong(each: Shown) -> Iterator[str]:
    try:
        job = Job.of_replay_id(each.id)
    except ValueError as error:
        yield str(error)
        return
    if (job.strategy, job.expected) != (each.strategy, each.word):
        yield f"{each.id} is no {each.word} of {each.strategy}"
    if agrees(claims(find(each.strategy).withstands, each.faults), Word(each.word)) is False:
        under = " + ".join(each.faults) or NO_FAULT
        yield f"{each.strategy} claims to withstand {under}, and {each.id} is {each.word}"


# -- executing again ------------------------------------------------------------------------------------------------


def shortest(schedules: Iterable[Shown], most: int | None) -> list[Shown]:
    """Return the `most` shortest schedules, one per strategy at most. Without `most`: all schedules."""
    if most is None:
        return list(schedules)
    first: dict[str, Shown] = {}
    for each in sorted(schedules, key=lambda each: each.steps):
        first.setdefault(each.strategy, each)
    return list(first.values())[:most]


def replayed(schedules: Sequence[Shown], replay: Replay) -> Iterator[tuple[Shown, str]]:
    """Execute each schedule again. Yield each one with "", or with what has changed."""
    of = {Job.of_replay_id(each.id): each for each in schedules}
    for job, answer in replay(list(of)):
        yield of[job], _otherwise(of[job], answer)


def _otherwise(schedule: Shown, answer: Mapping[str, Any]) -> str:
    if not answer["reproduced"]:
        why = f"{answer['verdict']}: {answer.get('cause', '')}".rstrip(": ")
        return f"ends as {why}, not as {schedule.word}"
    if answer["counterexample"]["opening"] is None:
        return "is a different schedule when it is executed again with its states shown"
    told = brief(answer["counterexample"])
    new = [sentence for sentence in told if sentence not in schedule.told]
    return (
        f"now has other sentences: {' '.join(new) or told}"
        if schedule.told and (*told,) != schedule.told
        else ""
    )
