"""The database engine while no server is known: it works for commands that need none, and explains otherwise."""
