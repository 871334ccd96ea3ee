"""The gate before psycopg."""
