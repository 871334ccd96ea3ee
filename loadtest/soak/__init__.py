"""The lab's own reliability: its service (`make serve`) is posted to over HTTP while its parts are killed.

    clients            post … (no answer) same key again … (503) same key again … 201 or 200 "replayed"
    background workers import files into the same books
    strikes            SIGKILL: a web worker, the web server, a background worker, Valkey, PostgreSQL
    judge              nothing acknowledged is lost, nothing is twice, every import is whole (loadtest/verdict/judge.py)

Two controls share the very same run: `no-lock` must lose money, and a client that takes a new key for each try must
have a posting applied twice. What kills nothing, or sees neither, has shown nothing.
"""
