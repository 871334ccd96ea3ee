"""The explorer on the ledger: strategies and locks as its subjects, campaigns over them, and their judge."""
