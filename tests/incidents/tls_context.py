# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A client that makes a TLS context for each request, and so reads and parses all certificates of all authorities each time."""
import http.server
import os
import ssl
import subprocess
import sys
import urllib.request

import certifi

from lib import incident

MANIFEST = {
    "title": "a TLS context for each request",
    "cause": "CPU",
    "words": [["CPU", "comput", "certificate", "TLS", "SSL"]],
    "must": "cause",
    "clock": "builds",
    "packages": ["certifi"],
    "programs": ["openssl"],
}
builds = incident.Clock("builds")


def client_context(certificate):
    with builds:
        context = ssl.create_default_context(cafile=certifi.where())  # cause
    context.load_verify_locations(certificate)
    return context


def fetch_quote(port, certificate):
    with urllib.request.urlopen(f"https://127.0.0.1:{port}/", context=client_context(certificate)) as answer:
        return answer.read()


def fetch_forever(port, certificate):
    while True:
        fetch_quote(port, certificate)


class Quote(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"42")


def server(port, folder):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder + "/certificate", folder + "/key")
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", port), Quote)
    listener.socket = context.wrap_socket(listener.socket, server_side=True)
    print(flush=True)
    listener.serve_forever()


def main():
    if sys.argv[1:]:
        server(int(sys.argv[1]), sys.argv[2])
    folder, port = incident.folder(), incident.free_port()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder + "/key", "-out", folder + "/certificate"],
                   check=True, capture_output=True)
    incident.again(os.path.abspath(__file__), str(port), folder)
    incident.in_background(fetch_forever, port, folder + "/certificate")
    incident.serve(__file__)


if __name__ == "__main__":
    main()
