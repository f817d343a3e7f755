"""Others' figures beside ours, in one run on one throw-away server. `on_NAME.py` drives one of them, in the environment of the peers."""
