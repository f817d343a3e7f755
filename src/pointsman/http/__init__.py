"""HTTP translates: it holds no rule.

`app(pm)` is an ASGI application to serve or to mount beside other routes. Importing this package loads FastAPI;
`import pointsman` does not import it.
"""

from pointsman.http.asgi import app

__all__ = ["app"]
