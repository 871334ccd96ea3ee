"""The card: the six strategies that `make demo` compares and that every list shows first. Without Django."""

CARD = ("no-lock", "naive-lock", "setnx", "watchdog", "select-for-update", "optimistic-version")
