"""The operations, each in the way that loses and in the way that does not."""

from django.core.cache import cache
from django.db import transaction
from django.db.models import F

from wallet.models import Redemption, Voucher, Wallet


class TooLate(Exception):
    """The voucher is used up."""


def redeem(code: str, user: int) -> None:
    """`atomic` takes no lock: two users read the same `left`."""
    with transaction.atomic():
        voucher = Voucher.objects.get(code=code)
        if voucher.left < 1:
            raise TooLate(code)
        voucher.left -= 1
        voucher.save()
        Redemption.objects.create(voucher=voucher, user=user)


def redeem_locked(code: str, user: int) -> None:
    """The row is locked before it is read."""
    with transaction.atomic():
        voucher = Voucher.objects.select_for_update().get(code=code)
        if voucher.left < 1:
            raise TooLate(code)
        voucher.left -= 1
        voucher.save()
        Redemption.objects.create(voucher=voucher, user=user)


def transfer(source: str, target: str, amount: int) -> bool:
    """Each wallet is read, changed and saved: the other transfer's change is overwritten."""
    with transaction.atomic():
        payer, payee = Wallet.objects.get(owner=source), Wallet.objects.get(owner=target)
        if payer.balance < amount:
            return False
        payer.balance -= amount
        payee.balance += amount
        payer.save()
        payee.save()
    return True


def transfer_in_place(source: str, target: str, amount: int) -> bool:
    """The database computes, under a condition; the wallets are locked in one order, so there is no deadlock."""
    with transaction.atomic():
        list(Wallet.objects.select_for_update().filter(owner__in=[source, target]).order_by("pk"))
        taken = Wallet.objects.filter(owner=source, balance__gte=amount).update(balance=F("balance") - amount)
        if taken:
            Wallet.objects.filter(owner=target).update(balance=F("balance") + amount)
    return bool(taken)


def redeem_behind_the_cache(code: str, user: int) -> bool:
    """Looks into the cache whether the user was here, and writes it there afterwards."""
    if cache.get(f"redeemed:{user}"):
        return False
    Redemption.objects.create(voucher=Voucher.objects.get(code=code), user=user)
    cache.set(f"redeemed:{user}", True, timeout=None)
    return True


def redeem_once_added(code: str, user: int) -> bool:
    """`add` looks and writes in one command."""
    if not cache.add(f"redeemed:{user}", True, timeout=None):
        return False
    Redemption.objects.create(voucher=Voucher.objects.get(code=code), user=user)
    return True
