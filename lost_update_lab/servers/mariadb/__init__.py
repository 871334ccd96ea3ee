"""MariaDB as the engine sees it."""
