# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service on http.server.HTTPServer, which answers one request after the other, while four clients ask; each answer waits for a backend."""
import http.server
import socket
import threading
import urllib.request

from lib import incident

MANIFEST = {
    "title": "a server that handles one connection after the other",
    "cause": "network",
    "words": [["another process", "peer", "network", "answer"]],
    "clock": "backend",
    "packages": [],
}
backend = incident.Clock("backend")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with backend, urllib.request.urlopen(f"http://127.0.0.1:{self.server.service}/", timeout=9) as answer:  # cause
            body = answer.read()
        self.send_response(200)
        self.send_header("Content-Length", len(body))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server.service = incident.slow_server(50)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    incident.load(server.server_address[1], "/", 4, 0)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
