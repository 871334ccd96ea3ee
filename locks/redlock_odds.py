"""How often Redlock fails, exactly: the Tair manual's (k %)^N beside what its rules give. See docs/redlock.md.

Each of N nodes forgets a lock with probability p while it is held, independently. The manual (B8) says that Redlock
fails only when all of them do: p^N. But a lock needs a quorum of M. Nobody can take one when N − M + 1 nodes are down,
and a lock that is held falls when so many nodes have forgotten it that another client finds a quorum.
"""

from __future__ import annotations

from math import comb


def manual(p: float, nodes: int) -> float:
    """The manual's figure: all nodes forget."""
    return p**nodes


def at_least(failures: int, nodes: int, p: float) -> float:
    """Probability that at least `failures` of `nodes` independent nodes fail."""
    return sum(comb(nodes, k) * p**k * (1 - p) ** (nodes - k) for k in range(max(failures, 0), nodes + 1))


def unavailable(p: float, nodes: int, quorum: int) -> float:
    """Probability that nobody can take a lock: fewer than a quorum of the nodes are up."""
    return at_least(nodes - quorum + 1, nodes, p)


def forgetting_that_breaks(taken: int, nodes: int, quorum: int) -> int:
    """How many of the `taken` nodes must forget a lock until a second client finds a quorum. 0: none has to."""
    return max(0, quorum - (nodes - taken))


def broken(p: float, nodes: int, quorum: int, taken: int | None = None) -> float:
    """Probability that a second client gets in while a lock is held, when each of the nodes on which it was
    `taken` (default: all) forgets it with probability `p`. Raises ValueError when `taken` is below the quorum."""
    taken = nodes if taken is None else taken
    if not quorum <= taken <= nodes:
        raise ValueError(f"taken on {taken} of {nodes} nodes with a quorum of {quorum}: no such lock")
    return at_least(forgetting_that_breaks(taken, nodes, quorum), taken, p)
