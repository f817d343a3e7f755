"""HTTP translates: it holds no rule."""
