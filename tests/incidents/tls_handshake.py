# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A client that makes a new TLS connection for each request to a service nearby, instead of keeping one."""
import http.client
import http.server
import os
import ssl
import subprocess
import sys

from lib import incident

MANIFEST = {
    "title": "a TLS handshake for each request",
    "cause": "connecting",
    "words": [["connect", "handshake", "TLS", "SSL"]],
    "must": "cause",
    "clock": "handshakes",
    "packages": [],
    "programs": ["openssl"],
}
handshakes = incident.Clock("handshakes")


def stock_of(port, context, number):
    link = http.client.HTTPSConnection("127.0.0.1", port, context=context)
    with handshakes:
        link.connect()  # cause
    link.request("GET", f"/stock/{number}")
    answer = link.getresponse().read()
    link.close()
    return answer


def ask_forever(port, certificate):
    context = ssl.create_default_context(cafile=certificate)
    number = 0
    while True:
        number += 1
        stock_of(port, context, number)


class Stock(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"42")


def server(port, folder):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder + "/certificate", folder + "/key")
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", port), Stock)
    listener.socket = context.wrap_socket(listener.socket, server_side=True)
    print(flush=True)
    listener.serve_forever()


def main():
    if sys.argv[1:]:
        server(int(sys.argv[1]), sys.argv[2])
    folder, port = incident.folder(), incident.free_port()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:3072", "-nodes", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", folder + "/key", "-out", folder + "/certificate"], check=True, capture_output=True)
    incident.again(os.path.abspath(__file__), str(port), folder)
    incident.in_background(ask_forever, port, folder + "/certificate")
    incident.serve(__file__)


if __name__ == "__main__":
    main()
