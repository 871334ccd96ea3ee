"""The exhaustive interleaving explorer: every schedule of real workers on real servers (docs/explorer.md)."""
