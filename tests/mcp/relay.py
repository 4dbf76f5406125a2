"""Stands before an MCP server over streamable HTTP, for the conformance suite of MCP: the suite has no token, and asks for
tools by fixed names.

    relay.py PREFIX HOST PORT TOKEN

Tools that the server calls PREFIX + name are called name, and each request gets the token. Everything else, headers and
streams too, passes as it is. Prints its port, then serves until it is killed.
"""

import http.client
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PREFIX, HOST, PORT, TOKEN = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
HOP_BY_HOP = {"connection", "content-length", "transfer-encoding", "keep-alive"}


class Relay(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        named = self.headers.get("Mcp-Name")
        try:
            message = json.loads(body)
            if message.get("method") == "tools/call":
                # A name that the suite makes up stays unknown with the prefix, too.
                message["params"]["name"] = PREFIX + message["params"]["name"]
                body = json.dumps(message).encode()
                named = named and PREFIX + named
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
        server = http.client.HTTPConnection(HOST, PORT)
        server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in HOP_BY_HOP | {"mcp-name"}:
                # The port in it is ours: the server checks the name.
                server.putheader(name, value)
        if named is not None:
            server.putheader("Mcp-Name", named)
        server.putheader("Authorization", f"Bearer {TOKEN}")
        server.putheader("Content-Length", str(len(body)))
        server.endheaders(body)
        answer = server.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        streamed = answer.getheader("Content-Type", "").startswith("text/event-stream")
        if not streamed:
            text = self.renamed(answer.read())
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            return
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            while line := answer.readline():
                self.wfile.write(self.renamed(line))
                self.wfile.flush()
        except BrokenPipeError:
            server.close()

    def renamed(self, text):
        return text.replace(b'"' + PREFIX.encode(), b'"')

    do_GET = do_POST = do_DELETE = forward


server = ThreadingHTTPServer(("127.0.0.1", 0), Relay)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
