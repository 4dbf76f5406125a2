"""A server whose notes change, made with the official Python library. Its tools change them, and say who follows what.

It notifies by itself before 2026-07-28, and by streams from then on.

    watched_server.py           on standard input and output
    watched_server.py --http    over streamable HTTP: prints its port, and ends with its standard input
"""

import json
import os
import signal
import socket
import sys
import threading

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

NOTES = ["note://one", "note://two", "note://three"]
changes = dict.fromkeys(NOTES, 0)
# Those of `resources/subscribe`, and those of each open stream.
subscribed = set()
streams = {}
bus = InMemorySubscriptionBus()
serve_stream = ListenHandler(bus)


async def list_resources(_ctx, _params):
    return types.ListResourcesResult(resources=[types.Resource(uri=uri, name=uri) for uri in NOTES])


async def read_resource(_ctx, params):
    text = f"changed {changes[str(params.uri)]} times"
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text=text)])


async def subscribe(_ctx, params):
    if params.uri not in changes:
        raise MCPError(-32002, f"there is no {params.uri}")
    subscribed.add(params.uri)
    return types.EmptyResult()


async def unsubscribe(_ctx, params):
    subscribed.discard(params.uri)
    return types.EmptyResult()


async def listen(ctx, params):
    asked = params.notifications.resource_subscriptions or []
    known = [uri for uri in asked if uri in changes]
    params.notifications.resource_subscriptions = known or None
    streams[ctx.request_id] = known
    try:
        return await serve_stream(ctx, params)
    finally:
        del streams[ctx.request_id]


async def list_tools(_ctx, _params):
    names = {"touch": {"uri": {"type": "string"}, "times": {"type": "integer"}}, "followed": {}, "die": {}}
    tools = [
        types.Tool(name=name, input_schema={"type": "object", "properties": properties})
        for name, properties in names.items()
    ]
    return types.ListToolsResult(tools=tools)


async def call_tool(ctx, params):
    arguments = params.arguments or {}
    if params.name == "touch":
        uri = arguments["uri"]
        for _ in range(arguments.get("times", 1)):
            if uri in changes:
                changes[uri] += 1
            await bus.publish(ResourceUpdated(uri=uri))
            if ctx.protocol_version < "2026-07-28":
                await ctx.session.send_resource_updated(uri)
        answer = "touched"
    elif params.name == "followed":
        answer = json.dumps(sorted(subscribed.union(*streams.values())))
    else:
        os.kill(os.getpid(), signal.SIGKILL)
    return types.CallToolResult(content=[types.TextContent(text=answer)])


async def main():
    server = Server(
        "watched",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_subscriptions_listen=listen,
    )
    if sys.argv[1:] == ["--http"]:
        return await serve_http(server)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def serve_http(server):
    import uvicorn

    def end_with_input():
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=end_with_input, daemon=True).start()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(16)
    print(listener.getsockname()[1], flush=True)
    await uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).serve(sockets=[listener])


anyio.run(main)
