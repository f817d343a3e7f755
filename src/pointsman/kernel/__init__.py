"""The kernel decides. Pure: no I/O, no clock, no chance, no logging, no threads."""
