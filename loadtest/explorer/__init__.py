"""The explorer on the ledger: strategies and locks under test, searches side by side, and what they found."""
