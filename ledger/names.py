"""Names that people read: without characters that nobody sees, which make one name look like another."""

from __future__ import annotations

import re

#: invisible characters (for a character class): control characters, and those that change the text's direction, which
#: can fake the end of a file name
UNSEEN = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
#: characters of no width, which make two names look alike
NO_WIDTH = r"\u00ad\u180e\u200b-\u200d\u2060-\u2064\U000e0000-\U000e007f"
#: of each book in which a load test warms up its callers
WARM_UP = "warm-up"
_NOT_IN_A_NAME = re.compile(rf"[{UNSEEN}{NO_WIDTH}]")


def visible(name: str) -> str:
    """Return `name` without its invisible characters."""
    return _NOT_IN_A_NAME.sub("", name)
