"""Ready-made circumstances for `manage.py compare --preset NAME`. An option given beside it wins."""

from __future__ import annotations

from typing import Any

#: name → (what it is, the options that it sets)
PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "article": (
        "the first article's experiment as published: 10 workers, +1 each, a random 1–100 ms before the read, "
        "the balance also looked at after 1 s",
        {
            "users": 10,
            "seconds": None,
            "iterations": 1,
            "look": 1.0,
            "workload_options": {"most": 1},
            "settings": {"before": [0.001, 0.1], "think": [0.0, 0.0]},
        },
    ),
    "article-wide": (
        "the same with the random 1–100 ms inside the window, between read and write",
        {
            "users": 10,
            "seconds": None,
            "iterations": 1,
            "look": 1.0,
            "workload_options": {"most": 1},
            "settings": {"before": [0.0, 0.0], "think": [0.001, 0.1]},
        },
    ),
    # 16 users meet at one account, and none waits longer than 10 ms before it looks again: get-then-set then
    # loses hundreds of postings a second on any machine. With the article's 500 ms it loses too, but a run of
    # 2 s has only some dozens of chances.
    "demo": (
        "2 s each, 16 users on one account, a waiting lock looks again after 10 ms",
        {"users": 16, "seconds": 2.0, "settings": {"poll": 0.01}},
    ),
}
