"""PostgreSQL as the engine sees it."""
