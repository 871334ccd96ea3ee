"""A fresh id is a random UUID like any other."""

from __future__ import annotations

import copy
import pickle
from uuid import RFC_4122, UUID

from ledger.models.ids import fresh


def test_it_is_a_random_uuid_like_any_other() -> None:
    made = [fresh() for _ in range(100)]
    assert len(set(made)) == 100
    assert {(each.version, each.variant, each.is_safe) for each in made} == {
        (4, RFC_4122, UUID(int=0).is_safe)
    }
    assert [UUID(str(each)) for each in made] == made
    assert pickle.loads(pickle.dumps(made[0])) == copy.deepcopy(made[0]) == made[0]
    zeros, ones = 2**128 - 1, 0
    for each in made:
        zeros, ones = zeros & each.int, ones | each.int
    fixed = UUID("00000000-0000-4000-8000-000000000000").int
    assert (zeros, ones) == (fixed, 2**128 - 1 - (0xB << 76) - (1 << 62))
