"""Ready-made conditions for `manage.py compare --preset NAME`. An option that is given as well takes precedence, except
a workload: what a preset says about one workload does not hold for another.
"""

from __future__ import annotations

from typing import Any

#: ten workers add 1 each to one account in Redis, after or around a random 1–100 ms
_ARTICLE: dict[str, Any] = {
    "workload": "deposits",
    "store": "redis",
    "users": 10,
    "seconds": None,
    "iterations": 1,
    "look": 1.0,
    "workload_options": {"most": 1},
}
#: name → (what it is, the options that it sets)
PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    # The article keeps the balance in Redis, with hardly any time between its GET and its SET. On a database row the
    # window is as wide as a transaction, and the same ten workers nearly always lose: that is another experiment.
    "article": (
        "the experiment of the hot-account article (A9) as published: the balance in Redis, 10 workers, +1 each, "
        "a random 1–100 ms before the read, the balance also read after 1 s; it rarely loses, "
        "and a run without a loss is inconclusive",
        {**_ARTICLE, "settings": {"before": [0.001, 0.1], "think": [0.0, 0.0]}},
    ),
    "article-wide": (
        "the same with the random 1–100 ms inside the window, between read and write",
        {**_ARTICLE, "settings": {"before": [0.0, 0.0], "think": [0.001, 0.1]}},
    ),
    # The control and get-then-set do not lose by luck. The 16 users leave one barrier together, each makes at least 5
    # postings however slow the machine is, and a waiting user polls again after 10 ms, so they meet hundreds of times.
    # The article's poll of 500 ms loses too, but gives a run of 2 s only a few dozen chances.
    "demo": (
        "2 s each, 16 users on one account, a waiting lock tries again after 10 ms",
        {"users": 16, "seconds": 2.0, "at_least": 5, "settings": {"poll": 0.01}},
    ),
}
