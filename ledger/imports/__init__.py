"""Batch imports: read a seller's CSV file, and post its lines by several workers at once, each line once.

csvfile (bytes → lines) → upload (lines → rows) → chunks (who works on what, until when) → posting (rows → entries)
"""
