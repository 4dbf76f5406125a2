#!/usr/bin/python3
"""An MCP server on standard input and output, for the tests: its one tool runs a real HTTP client.

    server.py CLIENTS      a JSON object of command lines, by name; the URL is added to the end

Only the standard library, so that it runs wherever Python does.
"""

import json
import subprocess
import sys

clients = json.loads(sys.argv[1])
SCHEMA = {
    "type": "object",
    "properties": {"client": {"type": "string"}, "url": {"type": "string"}},
    "required": ["client", "url"],
}


def fetch(arguments):
    command = [*clients[arguments["client"]], arguments["url"]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, stdin=subprocess.DEVNULL)
    text = f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return {"content": [{"type": "text", "text": text}], "isError": False}


def answer(method, params):
    if method == "initialize":
        info = {"name": "fetcher", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": "fetch", "description": "Fetches a URL.", "inputSchema": SCHEMA}]}
    if method == "tools/call":
        return fetch(params["arguments"])
    return {} if method == "ping" else None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        result = answer(message["method"], message.get("params", {}))
    except Exception as error:
        result = {"content": [{"type": "text", "text": repr(error)}], "isError": True}
    if result is None:
        reply["error"] = {"code": -32601, "message": "no such method"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
