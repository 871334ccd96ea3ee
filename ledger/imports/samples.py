"""Sample files: several sellers, who mostly pay the same few accounts. The same seed gives the same bytes."""

from __future__ import annotations

import csv
import io
import random
from itertools import accumulate

SELLERS = ("acme", "bolt-store", "cargo", "dune-books")
SEED = 20240501
REFUNDS = 0.25  # share of negative amounts


def sample_files(
    lines: int = 150, accounts: int = 12, sellers: tuple[str, ...] = SELLERS, seed: int = SEED
) -> dict[str, bytes]:
    """Return {file name: content}: one file per seller, with `lines` lines each.

    The n-th account is paid in proportion to 1/n (Zipf), so the first three get about half of all lines. Amounts are in
    minor units, ± 1.00 to 500.00.
    """
    numbers = [f"A{n:04d}" for n in range(1, accounts + 1)]
    weights = list(accumulate(1 / n for n in range(1, accounts + 1)))
    files = {}
    for seller in sellers:
        chance = random.Random(f"{seed}/{seller}")  # noqa: S311  (not a secret)
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(("seller", "account", "amount", "reference"))
        for number in range(1, lines + 1):
            account = chance.choices(numbers, cum_weights=weights)[0]
            sign = -1 if chance.random() < REFUNDS else 1
            rows.writerow((seller, account, sign * chance.randint(100, 50_000), f"{seller}-{number:05d}"))
        files[f"{seller}.csv"] = text.getvalue().encode()
    return files
