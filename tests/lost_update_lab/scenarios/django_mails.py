"""An operation that sends a mail when its transaction is committed, as a script. Prints the verdicts."""

from __future__ import annotations

from django.core import mail
from django.db import transaction
from django.test.utils import setup_test_environment

import tests.lost_update_lab.wallet as project
from lost_update_lab import explore, worker

setup_test_environment()


def empties(locks: bool) -> None:
    with transaction.atomic():
        wallets = project.Wallet.objects.select_for_update() if locks else project.Wallet.objects.all()
        if wallets.get(id=1).balance:
            project.Wallet.objects.filter(id=1).update(balance=0)
            transaction.on_commit(
                lambda: mail.send_mail("Your wallet is empty", "", "a@example.org", ["b@example.org"])
            )


for locks, invariant in ((False, None), (True, None), (False, lambda: len(mail.outbox) >= 1)):
    workers = [worker("Ann", empties, locks), worker("Bob", empties, locks)]
    result = explore(
        workers, setup=project.open_wallet, django=True, disposable=True, control=False, invariant=invariant
    )
    print(result.verdict)
