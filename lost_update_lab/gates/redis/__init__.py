"""The gate before redis-py."""
