"""Vouchers and wallets: what a shop's backend does with money."""
