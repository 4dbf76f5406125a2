"""A receiver of web hooks, over HTTPS and HTTP, outside of any jail.

receiver.py VERIFY LOG SECRET CERTIFICATE KEY: VERIFY is the module that the documentation shows, with `is_genuine`. Prints the
two ports, appends a line of JSON to LOG for each request, and ends with its standard input. What it answers is in the path.
"""

import http.server
import importlib.util
import json
import os
import ssl
import sys
import threading

_, VERIFY, LOG, SECRET, CERTIFICATE, KEY = sys.argv

spec = importlib.util.spec_from_file_location("verify", VERIFY)
verify = importlib.util.module_from_spec(spec)
spec.loader.exec_module(verify)

lock = threading.Lock()
seen = {}


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        genuine = verify.is_genuine(SECRET, self.headers.get("X-Talon-Signature", ""), body)
        headers = {name.lower(): value for name, value in self.headers.items()}
        line = {"path": self.path, "headers": headers, "body": body.decode(), "genuine": genuine}
        with lock:
            with open(LOG, "a", encoding="utf-8") as log:
                log.write(json.dumps(line) + "\n")
            key = headers.get("idempotency-key")
            seen[key] = seen.get(key, 0) + 1
            times = seen[key]
        kind, _, rest = self.path.strip("/").partition("/")
        if kind == "signed":
            self.answer(200 if genuine else 401)
        elif kind == "status":
            self.answer(int(rest.split("/")[0]), f"no\r\n\x1b[31mway {self.path} " + "x" * 5000)
        elif kind == "later":
            self.answer(503, "busy", {"Retry-After": "7"})
        elif kind == "flaky":
            self.answer(200 if times > 2 else 500)
        elif kind == "moved":
            self.answer(307, "", {"Location": "/signed"})
        elif kind == "silent":
            # Until the client has enough.
            self.rfile.read(1)
            self.close_connection = True
        elif kind == "breaks":
            self.close_connection = True
        else:
            self.answer(200)

    def answer(self, status, text="", headers=None):
        body = text.encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """Clients that end a connection are what is tested."""


def serve(context):
    server = Server(("127.0.0.1", 0), Receiver)
    # Handshakes belong to the thread of a connection: a client that never speaks must not hold up the others.
    server.daemon_threads = True
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(CERTIFICATE, KEY)
print(serve(tls), serve(None), flush=True)
sys.stdin.read()
os._exit(0)
