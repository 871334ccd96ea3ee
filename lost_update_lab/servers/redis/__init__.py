"""Redis and Valkey as the engine sees them."""
