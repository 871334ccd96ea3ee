"""The history: each call of the clients, journalled as it happens."""
