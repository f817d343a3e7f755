"""The engine joins a kernel decision and the store's writes in one transaction."""
