"""A wallet with a balance, a voucher with a number of uses, and its redemptions."""

from django.db import models


class Wallet(models.Model):
    owner = models.CharField(max_length=30, unique=True)
    balance = models.IntegerField(default=0)
    changed = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.owner}: {self.balance}"


class Voucher(models.Model):
    code = models.CharField(max_length=30, unique=True)
    left = models.IntegerField()

    def __str__(self) -> str:
        return self.code


class Redemption(models.Model):
    voucher = models.ForeignKey(Voucher, models.CASCADE)
    user = models.IntegerField()
    at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.user} used {self.voucher_id}"
