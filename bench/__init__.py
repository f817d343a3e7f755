"""Figures beside floors measured in the same run: `make bench`, or `python -m bench --quick`."""
