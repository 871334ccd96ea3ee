"""The explorer bound to the ledger: its strategies as subjects, its judge, its servers, its command."""
