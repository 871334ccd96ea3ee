"""Batch imports: read a seller's CSV file and post its lines with several workers in parallel, each line once.

csvfile (bytes → lines) → upload (lines → rows) → chunks (which worker has what, until when) → posting (rows → entries)
"""
