"""The servers as the engine sees them: contents, locks, leases, blocked commands."""
