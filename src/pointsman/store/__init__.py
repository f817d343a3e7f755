"""The store remembers: all SQL and all transactions."""
