"""`manage.py lease`: how long a lease, from measured section times (docs/lease.md)."""
