"""A small web server on this machine: the only network that tests may touch."""

import contextlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(self.path)
        answer = self.server.pages.get(self.path, (404, {}, b"nothing here"))
        status, headers, body = answer() if callable(answer) else answer
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            for piece in body if isinstance(body, list) else [body]:
                self.wfile.write(piece)
                self.wfile.flush()
                time.sleep(self.server.pause)

    def log_message(self, *_):
        pass


class Site(ThreadingHTTPServer):
    """`pages` maps a path to (status, headers, body) or to a function that gives them; `seen` lists what was asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages, self.seen, self.pause = {}, [], 0.0
        self.address = f"http://127.0.0.1:{self.server_port}"

    def show(self, path, body, status=200, **headers):
        """Let `path` answer with this; underscores in names of headers stand for hyphens."""
        self.pages[path] = (status, {name.replace("_", "-"): value for name, value in headers.items()}, body)

    def close(self):
        """From now on nobody answers."""
        self.shutdown()
        self.server_close()


@pytest.fixture
def site(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.close()
        thread.join()
