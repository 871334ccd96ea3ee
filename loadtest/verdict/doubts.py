"""The doubts: why a trial could not have shown a loss, and what to change so that it can."""

from __future__ import annotations

from loadtest.verdict.evidence import Doubt, Evidence


def doubts_about(evidence: Evidence) -> list[Doubt]:
    """Return every doubt about this trial. `kept` requires that there is none."""
    return [
        *doubts_within(evidence),
        *_operations(evidence),
        *_hazards(evidence),
        *_control(evidence),
    ]


def doubts_within(evidence: Evidence) -> list[Doubt]:
    """Return the doubts about a single run, whatever other runs of the trial have shown."""
    return [*evidence.doubts, *_books(evidence)]


def _operations(evidence: Evidence) -> list[Doubt]:
    doubts = []
    if not evidence.observed.acknowledged:
        told = "".join(f" ({count} × {error})" for error, count in list(evidence.errors.items())[:1])
        doubts.append(
            Doubt(f"no operation was acknowledged{told}", "look at the errors that the clients saw")
        )
    if not evidence.observed.overlaps:
        doubts.append(
            Doubt(
                "no two operations overlapped on one account",
                "more workers, fewer accounts, or more work inside",
            )
        )
    if evidence.unfinished:
        doubts.append(
            Doubt(
                f"{evidence.unfinished} workers had not finished",
                "wait for them, or give the trial more time",
            )
        )
    return doubts


def _books(evidence: Evidence) -> list[Doubt]:
    books = evidence.books
    if books is None:
        return []
    doubts = []
    if not books.balanced:
        told = books.problems[0] if books.problems else "no detail"
        doubts.append(
            Doubt(
                f"the books do not balance ({books.problem_count} problems): {told}",
                "look at the accounts by hand",
            )
        )
    elif books.drift:
        doubts.append(Doubt(f"an unexplained drift of {books.drift:+}", "look at the accounts by hand"))
    if books.acknowledged_operations != evidence.observed.acknowledged:
        cause = (
            f"the clients know {evidence.observed.acknowledged} acknowledged operations, "
            f"the books {books.acknowledged_operations}"
        )
        doubts.append(Doubt(cause, "reconcile with the operations of these very clients"))
    if books.unreported:
        entries = "1 entry is" if books.unreported == 1 else f"{books.unreported} entries are"
        cause = f"{entries} in the books that no client asked for"
        doubts.append(Doubt(cause, "reconcile with the operations of all who posted to the book"))
    return doubts


def _hazards(evidence: Evidence) -> list[Doubt]:
    if not evidence.asleep:
        return []
    return [Doubt(f"did not fire: {', '.join(sorted(evidence.asleep))}", "run it again, or longer")]


def _control(evidence: Evidence) -> list[Doubt]:
    remedy = "more workers, more work inside the window, or a longer run, until the control loses"
    if evidence.is_control:
        return [Doubt("the control, which has no lock, broke no law: this trial cannot tell", remedy)]
    if evidence.control is None:
        return [Doubt("no control was run", "run no-lock in the same trial", own=False)]
    if not evidence.control.breaks_the_law:
        told = f"the control came out as {evidence.control}: this trial cannot tell"
        return [Doubt(told, remedy, own=False)]
    return []
