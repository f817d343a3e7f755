"""Foreign systems, each an extra: loaded when used, and by nothing else"""
