"""The judge: the only place that chooses the word, for the swarm, the faults, the explorer and the admin.

    judge(evidence)      a trial: a swarm, a cell of the fault matrix, a whole search
    judge_run(evidence)  one run of many: a schedule of a search. The same laws, in the same order. A schedule without a
                         breach proves nothing by itself: the search as a whole is judged by `judge`

Only one code path returns `kept` (the last line of `judge`). It requires all of these:

    operations were acknowledged, and each of them is in the books
    operations truly overlapped
    every hazard of the trial that can touch the strategy has fired
    the control, in the same trial otherwise, broke its workload's law
    the books balance, and no law is broken
    nothing else casts doubt on the trial (cut short, unfinished workers, …)

Anything less is `inconclusive`, with a cause and a remedy: a run that could not have lost money shows nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from loadtest.verdict.doubts import doubts_about, doubts_within
from loadtest.verdict.evidence import Doubt, Evidence
from loadtest.verdict.laws import Breach, books_law
from loadtest.verdict.words import Word


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`cause`: the proof, or what is missing. `remedy`: how to get a verdict if there is none. `breaches`: all
    broken laws, the gravest first. `doubts`: the reasons for `inconclusive`."""

    word: Word
    cause: str = ""
    remedy: str = ""
    breaches: tuple[Breach, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    fired: Mapping[str, str] = field(default_factory=dict)
    not_applicable: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the fields for JSON. `not-run` has a `reason` instead of a `cause`, as everywhere."""
        told: dict[str, Any] = {"verdict": str(self.word), "fired": dict(self.fired)}
        told["not_applicable"] = dict(self.not_applicable)
        if self.word == Word.NOT_RUN:
            return {**told, "reason": self.cause, "remedy": self.remedy}
        breaches = [{"word": str(each.word), "sentence": each.sentence} for each in self.breaches]
        return {**told, "cause": self.cause, "remedy": self.remedy, "breaches": breaches}


def not_run(reason: str, remedy: str = "") -> Verdict:
    """Return `not-run`, which is no verdict. `reason`: the missing server, or why the adversary cannot touch the
    strategy."""
    if not reason:
        raise ValueError("not-run needs a reason: what is not shown must be explained")
    return Verdict(word=Word.NOT_RUN, cause=reason, remedy=remedy)


def in_doubt(*doubts: Doubt) -> Verdict:
    """Return `inconclusive`: the trial proves nothing, why, and what to change."""
    causes = "; ".join(dict.fromkeys(each.cause for each in doubts))
    remedies = "; ".join(dict.fromkeys(each.remedy for each in doubts))
    return Verdict(word=Word.INCONCLUSIVE, cause=causes, remedy=remedies, doubts=doubts)


def judge(evidence: Evidence) -> Verdict:
    """Return the gravest word that applies to a trial."""
    if broken := _broken(evidence):
        return broken
    if evidence.planned and evidence.planned == evidence.untouchable:
        reasons = (f"{hazard}: {evidence.not_applicable[hazard]}" for hazard in sorted(evidence.planned))
        return _say(evidence, Word.NOT_RUN, "; ".join(reasons))
    if doubts := doubts_about(evidence):
        return replace(in_doubt(*doubts), fired=evidence.fired, not_applicable=evidence.not_applicable)
    return _say(evidence, Word.KEPT, _how_it_was_kept(evidence))


def judge_run(evidence: Evidence) -> Verdict | None:
    """Return the gravest word that applies to a single run, or `inconclusive` with its doubts; None if there is neither
    a breach nor a doubt."""
    if broken := _broken(evidence):
        return broken
    doubts = doubts_within(evidence)
    return in_doubt(*doubts) if doubts else None


def _broken(evidence: Evidence) -> Verdict | None:
    breaches = sorted(_breaches(evidence), key=lambda each: each.word.gravity)
    if not breaches:
        return None
    cause = "; ".join(each.sentence for each in breaches)
    return _say(evidence, breaches[0].word, cause, breaches=tuple(breaches))


def _say(evidence: Evidence, word: Word, cause: str, breaches: tuple[Breach, ...] = ()) -> Verdict:
    return Verdict(
        word=word,
        cause=cause,
        breaches=breaches,
        fired=evidence.fired,
        not_applicable=evidence.not_applicable,
    )


def _breaches(evidence: Evidence) -> list[Breach]:
    breaches = [*(books_law(evidence.books) if evidence.books else ()), *evidence.breaches]
    if evidence.stall:
        seconds = f"{evidence.stall.seconds:.1f} s"
        told = (
            f"{seconds}, recovered by itself"
            if evidence.stall.recovered
            else f"had not recovered after {seconds}"
        )
        breaches.append(Breach(Word.STALLED, f"{evidence.stall.sentence} ({told})"))
    return breaches + _refusals(evidence)


def _refusals(evidence: Evidence) -> list[Breach]:
    """`refused` means unavailable but right, so it never applies to books that do not add up. After a hazard no
    explicit refusal is needed: it is enough that no client was served."""
    books, answers = evidence.books, evidence.answers
    if books is not None and (not books.balanced or books.drift or books.unreported):
        return []
    if evidence.unavailable:
        return [Breach(Word.REFUSED, evidence.unavailable)]
    since = " since the hazard" if any(evidence.fired.values()) else ""
    if since and answers.in_vain and not answers.acknowledged + answers.declined:
        told = f"none of {answers.in_vain} operations was acknowledged{since}"
    elif answers.refused > answers.acknowledged:
        told = (
            f"{answers.refused} operations were refused{since}, and only {answers.acknowledged} acknowledged"
        )
    else:
        return []
    return [Breach(Word.REFUSED, told)]


def _how_it_was_kept(evidence: Evidence) -> str:
    observed = evidence.observed
    fired = f"; fired: {', '.join(sorted(evidence.fired))}" if evidence.fired else ""
    kept = evidence.covered or (
        f"{observed.acknowledged} operations acknowledged and each of them kept; "
        f"{observed.overlaps} operations overlapped another"
    )
    return f"{kept}; the control came out as {evidence.control}{fired}"
