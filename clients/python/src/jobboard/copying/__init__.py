"""Copies of boards: to another server, or of what has ended to where it is kept.

- boards.py: all of a board from one server to another, by records
- archive.py: follows a board and hands over what has ended
- stores.py: a file, SQLite, PostgreSQL

Uses `board`.
"""
