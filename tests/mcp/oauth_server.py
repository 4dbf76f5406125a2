#!/usr/bin/python3
"""An MCP server that wants a login, and its authorization server, for the tests: by the book, or with one lie.

    oauth_server.py [--lie LIE] [--expires SECONDS]

Prints the ports of both, and ends when its standard input is closed. Only the standard library.
"""

import argparse
import base64
import hashlib
import json
import os
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

parser = argparse.ArgumentParser()
parser.add_argument("--lie", choices=["issuer", "redirected-metadata", "foreign-metadata", "other-resource", "no-pkce", "other-iss",
                                       "verification-address", "user-code", "denied", "no-device", "foreign-revocation", "no-revocation"])
parser.add_argument("--expires", type=int, default=3600)
options = parser.parse_args()

ELSEWHERE = "http://169.254.169.254"
codes, refresh_tokens, access_tokens, clients = {}, set(), set(), set()
devices, revoked = {}, []
seen = []


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def whole(self, status, body=b"", **headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content_Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()


class Authorization(Server):
    def do_GET(self):
        url = urlsplit(self.path)
        if url.path == "/.well-known/oauth-authorization-server":
            if options.lie == "redirected-metadata":
                return self.whole(302, Location=f"{ELSEWHERE}/metadata")
            named = ELSEWHERE if options.lie == "issuer" else ISSUER
            revocation = "https://elsewhere.example/revoke" if options.lie == "foreign-revocation" else f"{ISSUER}/revoke"
            more = {} if options.lie == "no-device" else {"device_authorization_endpoint": f"{ISSUER}/device"}
            more |= {} if options.lie == "no-revocation" else {"revocation_endpoint": revocation}
            return self.whole(200, more | {
                "issuer": named, "authorization_endpoint": f"{ISSUER}/authorize", "token_endpoint": f"{ISSUER}/token",
                "registration_endpoint": f"{ISSUER}/register", "authorization_response_iss_parameter_supported": True,
                "code_challenge_methods_supported": ["plain"] if options.lie == "no-pkce" else ["S256"],
            })
        if url.path == "/authorize":
            asked = {key: values[0] for key, values in parse_qs(url.query).items()}
            assert asked["client_id"] in clients and asked["code_challenge_method"] == "S256" and asked["resource"] == RESOURCE
            code = secrets.token_urlsafe()
            codes[code] = asked
            back = {"code": code, "state": asked["state"], "iss": ELSEWHERE if options.lie == "other-iss" else ISSUER}
            return self.whole(302, Location=f"{asked['redirect_uri']}?{urlencode(back)}")
        if url.path == "/revoked":
            return self.whole(200, {"hints": revoked, "left": len(refresh_tokens) + len(access_tokens)})
        if url.path == "/activate":
            code = parse_qs(url.query)["user_code"][0]
            next(asked for asked in devices.values() if asked["user_code"] == code)["granted"] = True
            return self.whole(200, b"done")
        self.whole(404)

    def do_POST(self):
        body = self.body()
        if self.path == "/register":
            client = secrets.token_urlsafe()
            clients.add(client)
            return self.whole(201, {**json.loads(body), "client_id": client})
        asked = {key: values[0] for key, values in parse_qs(body).items()}
        if self.path == "/device" and asked.get("client_id") in clients and asked.get("resource") == RESOURCE:
            device, code = secrets.token_urlsafe(), "\x1b[2J" if options.lie == "user-code" else "WDJB-MJHT"
            devices[device] = {"user_code": code, "polls": 0, "granted": False}
            where = "http://elsewhere.example/activate" if options.lie == "verification-address" else f"{ISSUER}/activate"
            return self.whole(200, {"device_code": device, "user_code": code, "verification_uri": where, "expires_in": 120, "interval": 1})
        if self.path == "/revoke" and asked.get("client_id") in clients:
            revoked.append(asked["token_type_hint"])
            refresh_tokens.discard(asked["token"])
            access_tokens.discard(asked["token"])
            return self.whole(200)
        if self.path != "/token" or asked.get("client_id") not in clients or asked.get("resource") != RESOURCE:
            return self.whole(400, {"error": "invalid_request"})
        if asked["grant_type"] == "authorization_code":
            begun = codes.pop(asked["code"], None)
            challenge = base64.urlsafe_b64encode(hashlib.sha256(asked["code_verifier"].encode()).digest()).rstrip(b"=").decode()
            if not begun or begun["code_challenge"] != challenge or begun["redirect_uri"] != asked["redirect_uri"]:
                return self.whole(400, {"error": "invalid_grant"})
        elif asked["grant_type"] == "urn:ietf:params:oauth:grant-type:device_code":
            device = devices[asked["device_code"]]
            device["polls"] += 1
            if options.lie == "denied":
                return self.whole(400, {"error": "access_denied", "error_description": "they said no"})
            if device["polls"] == 1 or not device["granted"]:
                return self.whole(400, {"error": "authorization_pending"})
            devices.pop(asked["device_code"])
        elif asked["refresh_token"] in refresh_tokens:
            refresh_tokens.discard(asked["refresh_token"])
        else:
            return self.whole(400, {"error": "invalid_grant", "error_description": "this refresh token was used"})
        access, refresh = secrets.token_urlsafe(), secrets.token_urlsafe()
        access_tokens.add(access)
        refresh_tokens.add(refresh)
        self.whole(200, {"access_token": access, "token_type": "Bearer", "expires_in": options.expires, "refresh_token": refresh})


class Mcp(Server):
    def refuse(self):
        at = f"{ELSEWHERE}/x" if options.lie == "foreign-metadata" else f"{ORIGIN}/.well-known/oauth-protected-resource/mcp"
        self.whole(401, b"who are you?", WWW_Authenticate=f'Bearer resource_metadata="{at}"')

    def do_GET(self):
        if self.path == "/.well-known/oauth-protected-resource/mcp":
            resource = f"{ELSEWHERE}/mcp" if options.lie == "other-resource" else RESOURCE
            return self.whole(200, {"resource": resource, "authorization_servers": [ISSUER]})
        self.refuse()

    def do_POST(self):
        body = self.body()
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if token not in access_tokens:
            return self.refuse()
        seen.append(token)
        message = json.loads(body)
        method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
        if id is None:
            return self.whole(202)
        result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        if method == "server/discover":
            result |= {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        elif method == "tools/list":
            none = {"type": "object", "properties": {}}
            result |= {"tools": [{"name": name, "inputSchema": none} for name in ("tokens", "withdraw")]}
        elif params["name"] == "withdraw":
            access_tokens.clear()
            result |= {"content": [{"type": "text", "text": "withdrawn"}]}
        else:
            result |= {"content": [{"type": "text", "text": str(len(set(seen)))}]}
        self.whole(200, {"jsonrpc": "2.0", "id": id, "result": result})


servers = [ThreadingHTTPServer(("127.0.0.1", 0), handler) for handler in (Mcp, Authorization)]
ORIGIN, ISSUER = (f"http://127.0.0.1:{server.server_address[1]}" for server in servers)
RESOURCE = f"{ORIGIN}/mcp"
for server in servers:
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
print(*(server.server_address[1] for server in servers), flush=True)
sys.stdin.read()
os._exit(0)
