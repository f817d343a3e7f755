"""MCP translates: it holds no rule.

Tools are made from the served machines' definitions (`tools.py`), read and answered by `desk.py`, and spoken over
stdio (`stdio.py`) and streamable HTTP (`streamable.py`). Only `server.py` and what builds on it load the SDK.
"""
