"""The table of claims and findings for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from loadtest.commandline.again import again
from loadtest.findings.explored import HAZARD_OF, MISTAKE
from loadtest.report.narrow import blank, filled, width_of
from loadtest.report.terminal import WORD_STYLES, was_stopped
from loadtest.verdict.claims import agrees, missing, undecided
from loadtest.verdict.words import LETTERS, Word, breaks
from lost_update_lab.replay.shrink import TIMES

SHORT = {
    "contention": "no fault",
    "crash-holding": "crash",
    "pause": "pause",
    "renewal-dies": "renewal dies",
    "worker-dies-renewal-lives": "orphan",
    "failover": "failover",
    "lost-reply": "lost reply",
    "clock-jump": "clock",
}


#: short forms for the terminal
ABBREVIATED = {"inconclusive": LETTERS["inconclusive"]}


TITLE = "Every schedule: claim × finding"
SIGNS = {
    "!": "contradicts the claim",
    LETTERS["inconclusive"]: "inconclusive",
    LETTERS["not-run"]: "not applicable",
    "–": "not tried",
    "decided": "every claim is decided; the other hazards were left at their first loss",
}


def tables(results: Sequence[Mapping[str, Any]], width: int) -> list[RenderableType]:
    """Return what to print, at most `width` wide: a word in each cell if there is room, otherwise a letter under the
    hazard's number."""
    heads = [SHORT[str(hazard)] for hazard in HAZARD_OF.values()]
    drawn = _table(results, heads, lambda word: ABBREVIATED.get(word, word))
    if width_of(drawn) <= width:
        return [Text(_explained(SIGNS, width)), drawn]
    drawn = _table(results, [str(n) for n, _ in enumerate(heads, 1)], lambda word: LETTERS[word])
    words = dict.fromkeys(word for each in results for word in each["under"].values())
    signs = {LETTERS[word]: word for word in words} | SIGNS
    numbers = filled([f"{n} {head}" for n, head in enumerate(heads, 1)], ", ", width)
    return [Text(_explained(signs, width)), drawn, Text(numbers)]


def _explained(signs: Mapping[str, str], width: int) -> str:
    return TITLE + ":\n" + filled([f"{sign} {told}" for sign, told in signs.items()], " | ", width)


def _table(results: Iterable[Mapping[str, Any]], heads: Iterable[str], short: Callable[[str], str]) -> Table:
    """Return a table with one row for each strategy. A cell is the finding; `!` contradicts the claim."""
    drawn = blank(2)
    drawn.add_column("strategy", min_width=12, overflow="fold")
    drawn.add_column("verdict", no_wrap=True)
    for head in heads:
        drawn.add_column(head, no_wrap=True)
    drawn.add_column("schedules", justify="right", no_wrap=True)
    drawn.add_column("", no_wrap=True)
    for result in results:
        cells = [_cell(result, str(hazard), short) for hazard in HAZARD_OF.values()]
        word = result["verdict"]
        seen = f"{result['schedules']:,}" if result["schedules"] else "–"
        drawn.add_row(
            escape(result["strategy"]),
            f"[{WORD_STYLES[word]}]{so_far(result)}[/]",
            *cells,
            seen,
            ended(result),
        )
    return drawn


def ended(result: Mapping[str, Any]) -> str:
    """Return how its search ended, or "" if there was none."""
    if result["exhausted"]:
        return "exhausted"
    if result["cut_short"]:
        return "cut short"
    return "decided" if result["schedules"] else ""


def so_far(result: Mapping[str, Any]) -> str:
    """Return the verdict, with "so far" if the search was cut short: a graver one may remain."""
    decided = result["verdict"] != Word.INCONCLUSIVE
    return str(result["verdict"]) + (" so far" if result.get("cut_short") and decided else "")


def _cell(result: Mapping[str, Any], hazard: str, short: Callable[[str], str]) -> str:
    if hazard in result["not_applicable"]:
        return "[dim]·[/]"
    word = result["under"].get(hazard)
    if word is None:
        return "[dim]–[/]"
    return f"[{WORD_STYLES[word]}]{short(word)}[/]" + (
        "[bold red]![/]" if breaks_claim(result, hazard) else ""
    )


def breaks_claim(result: Mapping[str, Any], hazard: str) -> bool:
    """Does it claim to withstand the hazard but fail to? `inconclusive` breaks no claim."""
    return agrees(hazard in result["claims"], Word(result["under"][hazard])) is False


def how_again(example: Mapping[str, Any], gates: Sequence[str] = ()) -> str:
    """Return the command that repeats a counterexample, or why there is none."""
    if name := example["id"]:
        options = [word for gate in gates for word in ("--gate", gate)]
        return f"again: {again('explore', '--replay', name, *options, third_party=':' in name)}"
    return f"it came out the same in only {example['confirmed']} of {TIMES} repetitions, so it has no id"


def remarks(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each result that needs one, and the command for each counterexample."""
    results, told = list(results), []
    for result in results:
        name = result["strategy"]
        if was_stopped(result):
            continue
        if result["verdict"] in ("inconclusive", "not-run"):
            why = result.get("cause") or result.get("reason")
            told.append(f"{name}: {why}." + (f" Remedy: {result['remedy']}." if result.get("remedy") else ""))
        elif result["cut_short"] and "budget" not in result["cut_short"]:
            told.append(f"{name}: the search was cut short: {result['cut_short']}.")
        if trace := result.get("trace"):
            told.append("\n".join(f"    {line}" for line in trace.rstrip().splitlines()))
        if example := result["counterexample"]:
            under = f" under {' and '.join(example['faults'])} together" if len(example["faults"]) > 1 else ""
            told.append(f"{name}: {result['verdict']}{under}; {how_again(example, result.get('gates', ()))}")
        told += _raised(result)
        if result["agrees"] is False:
            broken = [hazard for hazard in result["under"] if breaks_claim(result, hazard)]
            broken = broken or [" and ".join(result["counterexample"]["faults"]) + " together"]
            told.append(f"{name} claims to withstand {', '.join(broken)}, and does not.")
        elif unclaimed := _unclaimed(result):
            claims = ", ".join(result["claims"]) or "nothing"
            told.append(
                f"{name}: {unclaimed}. It claims to withstand {claims}, so this contradicts no claim and does not "
                f"change the exit code; with --require {','.join(_broken_under(result))} it is 1."
            )
    short = [_undecided(each) for each in results if so_far(each) != each["verdict"]]
    if short:
        told.append(
            f"Cut short, so a graver schedule may remain: {'; '.join(short)}. More time: --budget SECONDS."
        )
    return told


def _raised(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield what each `?` of a worker that raised an error stands for, and the error's traceback."""
    seen = {""}
    for hazards, example in result.get("counterexamples", {}).items():
        trace = example.get("trace", "")  # a report of an earlier version has none
        if not trace:
            continue
        if example != result["counterexample"]:
            again = how_again(example, result.get("gates", ()))
            yield f"{result['strategy']} under {hazards}: {example['sentences'][-1]}; {again}. Remedy: {MISTAKE}."
        if trace not in seen:
            yield "\n".join(f"    {line}" for line in trace.splitlines())
        seen.add(trace)


def _broken_under(result: Mapping[str, Any]) -> list[str]:
    return [hazard for hazard, word in result["under"].items() if breaks(word)]


def _unclaimed(result: Mapping[str, Any]) -> str:
    """Return what breaks a third-party lock beyond its claims. Its author may not have been asked for any claims."""
    if ":" not in result["strategy"]:
        return ""
    found: dict[str, list[str]] = {}
    for hazard in _broken_under(result):
        found.setdefault(result["under"][hazard], []).append(hazard)
    return "; ".join(f"{word} under {', '.join(hazards)}" for word, hazards in found.items())


def not_kept(results: Iterable[Mapping[str, Any]], required: Collection[str]) -> list[str]:
    """Return a sentence for each result that fails --require."""
    found = [(each, missing(each, required)) for each in results]
    return [
        f"{result['strategy']}: required, and not kept: "
        + ", ".join(f"{hazard} ({result['under'].get(hazard, 'not tried')})" for hazard in hazards)
        + "."
        for result, hazards in found
        if hazards
    ]


def _undecided(result: Mapping[str, Any]) -> str:
    claimed = undecided(result)
    name: str = result["strategy"]
    return name + (f" (claims not decided: {', '.join(claimed)})" if claimed else "")
