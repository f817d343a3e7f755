"""What redraws the documentation and what plants bugs; no part of the package."""
