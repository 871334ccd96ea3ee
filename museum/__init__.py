"""Real bugs with money, each broken and mended: what `python -m museum` explores, and docs/museum.md tells."""
