"""Packages of the registry as they are published, each at a pinned version in an environment of its own."""
