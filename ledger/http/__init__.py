"""The ledger over HTTP: the JSON API, its errors, health, and how the web server runs."""
