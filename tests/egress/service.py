#!/usr/bin/python3
"""The local imitation of a service: HTTPS with a certificate of a private authority, and plain HTTP.

    service.py CERTIFICATE KEY

Prints both ports, then answers every request with the host that it was asked for. Ends with its standard input.
"""

import http.server
import ssl
import sys
import threading


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length).decode()
        scheme = "https" if isinstance(self.connection, ssl.SSLSocket) else "http"
        text = f"reached {self.headers['Host']} over {scheme} with {self.command} {self.path} {body}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET

    def log_message(self, *_):
        pass


def start(tls):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


print(start(True), start(False), flush=True)
sys.stdin.read()
