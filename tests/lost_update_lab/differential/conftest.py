"""The servers of other folders: scenario's PostgreSQL and Valkey stand in tests/conftest.py, MariaDB here."""

from __future__ import annotations

from tests.lost_update_lab.mariadb.conftest import address, explored_mariadb

__all__ = ["address", "explored_mariadb"]
