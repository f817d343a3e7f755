"""The command line translates: it holds no rule."""
