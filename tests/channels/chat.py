"""A program with a chat: it gets the answers of the plugin `chat-webhook`, and checks their signatures as the documentation says.

chat.py SECRET: prints its port, and ends with its standard input. Each message is answered with 503 once, and with 200 when it comes again.

  GET /control/got     what was accepted, oldest first, each with the number of its requests
"""

import hashlib
import hmac
import http.server
import json
import sys
import threading
import time

SECRET = sys.argv[1].encode()
lock = threading.Lock()
got, times = [], {}


def is_genuine(signature, body):
    try:
        moment, mac = signature.removeprefix("t=").split(",v1=")
        fresh = abs(time.time() - int(moment)) <= 300
    except ValueError:
        return False
    wanted = hmac.new(SECRET, moment.encode() + b"." + body, hashlib.sha256).hexdigest()
    return fresh and hmac.compare_digest(wanted, mac)


class Chat(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path.startswith("/files/"):
            genuine = is_genuine(self.headers.get("X-Desk-Signature", ""), self.path.encode())
            return self.answer(200 if genuine else 401, "what is planned")
        with lock:
            self.answer(200, got)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not is_genuine(self.headers.get("X-Desk-Signature", ""), body):
            return self.answer(401, {})
        message = json.loads(body)
        with lock:
            key = self.headers["Idempotency-Key"]
            times[key] = times.get(key, 0) + 1
            if times[key] == 1:
                return self.answer(503, {})
            got.append(message)
        return self.answer(200, {})

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status == 503:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Chat)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
