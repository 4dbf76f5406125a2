#!/usr/bin/python3
"""An MCP server over streamable HTTP, for the tests: by the book in either revision, or with one lie.

    http_server.py [--revision old|new] [--lie LIE]

Prints its port, and ends when its standard input is closed. Only the standard library.
"""

import argparse
import json
import os
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

parser = argparse.ArgumentParser()
parser.add_argument("--revision", choices=["old", "new"], default="old")
parser.add_argument("--lie", choices=["hang", "redirect", "endless", "huge", "html", "unauthorized", "error", "flood"])
parser.add_argument("--token")
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--tls", nargs=2, metavar=("CERTIFICATE", "KEY"))
options = parser.parse_args()
OLD, NEW = "2025-11-25", "2026-07-28"
seen = []

TOOLS = [
    {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}},
    {"name": "stream", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "hang", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "seen", "inputSchema": {"type": "object", "properties": {}}},
]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def whole(self, status, body, **headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content_Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, message):
        self.wfile.write(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n")
        self.wfile.flush()

    def do_GET(self):
        self.whole(405, b"")

    do_DELETE = do_GET

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
        seen.append({"method": method, "version": self.headers.get("MCP-Protocol-Version"), "name": self.headers.get("Mcp-Name"),
                     "token": self.headers.get("Authorization"), "session": self.headers.get("Mcp-Session-Id")})
        if options.token and self.headers.get("Authorization") != options.token:
            return self.whole(401, b"who are you?")
        result = lambda result: {"jsonrpc": "2.0", "id": id, "result": result}
        if options.lie == "hang":
            time.sleep(3600)
        if options.lie == "redirect":
            return self.whole(307, b"", Location="http://169.254.169.254/latest/meta-data")
        if options.lie == "html":
            return self.whole(200, b"<html>hello</html>", Content_Type="text/html")
        if options.lie == "error":
            return self.whole(503, b"gone fishing", Retry_After="120")
        if options.lie == "endless":
            self.events()
            while True:
                self.wfile.write(b"data: " + b"x" * 65536)
        if options.lie == "flood":
            self.events()
            while True:
                self.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
        if method == "server/discover" and options.revision == "old":
            return self.whole(400, {"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": "Missing session"}})
        if method == "server/discover":
            return self.whole(200, result({"resultType": "complete", "supportedVersions": [NEW], "capabilities": {"tools": {}},
                                           "ttlMs": 0, "cacheScope": "private"}))
        if method == "initialize":
            return self.whole(200, result({"protocolVersion": OLD, "capabilities": {"tools": {}},
                                           "serverInfo": {"name": "fixture", "version": "1"}}), Mcp_Session_Id="s1")
        if id is None:
            return self.whole(202, b"")
        if options.revision == "old" and self.headers.get("Mcp-Session-Id") != "s1":
            return self.whole(400, b"no session")
        complete = {"resultType": "complete"} if options.revision == "new" else {}
        if method == "tools/list":
            return self.whole(200, result({**complete, "tools": TOOLS, "ttlMs": 0, "cacheScope": "private"}))
        name = params.get("name")
        said = (params.get("arguments") or {}).get("text", "")
        if name == "seen":
            said = json.dumps(seen)
        answer = result({**complete, "content": [{"type": "text", "text": said}]})
        if name == "hang":
            time.sleep(3600)
        if name == "echo" and options.lie == "huge" and said == "huge":
            return self.whole(200, result({**complete, "content": [{"type": "text", "text": "x" * (50 << 20)}]}))
        if name == "stream":
            self.events()
            token = (params.get("_meta") or {}).get("progressToken")
            for step in (1, 2, 3):
                self.event({"jsonrpc": "2.0", "method": "notifications/progress",
                            "params": {"progressToken": token, "progress": step, "total": 3}})
                time.sleep(0.15)
            return self.event(result({**complete, "content": [{"type": "text", "text": "streamed"}]}))
        self.whole(200, answer)


server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
server.daemon_threads = True
if options.tls:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*options.tls)
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
os._exit(0)
