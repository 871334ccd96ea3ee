"""A wallet in Django, and its asynchronous ORM, as a script. Prints the verdicts."""

from __future__ import annotations

import asyncio

from django.db.models import F

from lost_update_lab import explore, worker
from tests.lost_update_lab.wallet import Wallet, open_wallet


async def withdraw(amount: int) -> int:
    wallet = await Wallet.objects.aget(id=1)
    wallet.balance -= amount
    await wallet.asave()
    return amount


async def withdraw_in_place(amount: int) -> int:
    await Wallet.objects.filter(id=1).aupdate(balance=F("balance") - amount)
    return amount


async def withdraw_in_a_task(amount: int) -> int:
    """As Django's handler of ASGI does it: the task begins in asgiref, which asks for its thread's number in a lock."""
    return await asyncio.create_task(withdraw(amount))


for operation in (withdraw, withdraw_in_place, withdraw_in_a_task):
    workers = [worker("Ann", operation, 10), worker("Bob", operation, 20)]
    result = explore(workers, setup=open_wallet, django=True, disposable=True)
    print(operation.__name__, result.verdict, result.exhausted)
