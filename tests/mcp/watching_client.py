"""The official Python client follows resources of `talon mcp`, with both of its ways.

    watching_client.py COMMAND ARGS…
    watching_client.py --http URL TOKEN
"""

import sys
from contextlib import asynccontextmanager

import anyio
import httpx2
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated, SubscriptionLost

ONE, TWO = "notes+note://one", "notes+note://two"
# Only a limit for hangs.
WAIT_SECONDS = 60


async def said(client, tool, **arguments):
    answer = await client.call_tool(f"notes__{tool}", arguments)
    assert not answer.is_error, answer
    return answer.content[0].text.splitlines()[1]


async def until_followed(client, wanted):
    while await said(client, "followed") != wanted:
        await anyio.sleep(0.05)


async def touch_and_wait(client, updates, uri):
    """Changes the note, and waits until the client was told."""
    await said(client, "touch", uri=uri.removeprefix("notes+"))
    while True:
        if await updates() == uri:
            return


async def survive(client, updates):
    """The server is killed with a signal that it cannot catch; what is followed is followed again, and counts as changed."""
    answer = await client.call_tool("notes__die", {})
    assert answer.is_error, answer
    assert await updates() == ONE


async def with_requests(server):
    sent, received = anyio.create_memory_object_stream(100)

    async def on_message(message):
        if isinstance(message, types.ResourceUpdatedNotification):
            await sent.send(str(message.params.uri))

    async with Client(server, mode="legacy", message_handler=on_message) as client:
        assert client.server_capabilities.resources.subscribe is True, client.server_capabilities
        await client.subscribe_resource(ONE)
        assert await said(client, "followed") == '["note://one"]'
        await said(client, "touch", uri="note://two")
        await touch_and_wait(client, received.receive, ONE)
        try:
            await client.subscribe_resource("notes+note://none")
            raise AssertionError("a resource that is not there was subscribed to")
        except MCPError as error:
            assert "note://none is not: the MCP server" in str(error), error
        await survive(client, received.receive)
        await until_followed(client, '["note://one"]')
        await touch_and_wait(client, received.receive, ONE)
        await client.unsubscribe_resource(ONE)
        await until_followed(client, "[]")


async def with_a_stream(server):
    async with Client(server) as client:
        assert client.protocol_version == "2026-07-28", client.protocol_version
        async with client.listen(resource_subscriptions=[ONE], tools_list_changed=True) as stream:

            async def updates():
                while True:
                    event = await anext(stream)
                    if isinstance(event, ResourceUpdated):
                        return str(event.uri)

            assert stream.honored.resource_subscriptions == [ONE], stream.honored
            await until_followed(client, '["note://one"]')
            await said(client, "touch", uri="note://two")
            await touch_and_wait(client, updates, ONE)
            await survive(client, updates)
            await until_followed(client, '["note://one"]')
            await touch_and_wait(client, updates, ONE)
        await until_followed(client, "[]")
        try:
            async with client.listen(resource_subscriptions=["notes+note://none"]) as stream:
                await anext(stream)
            raise AssertionError("a resource that is not there is followed")
        except SubscriptionLost as error:
            assert "note://none is not: the MCP server" in str(error.__cause__), repr(error.__cause__)


@asynccontextmanager
async def server():
    if sys.argv[1] != "--http":
        yield StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
        return
    url, token = sys.argv[2:]
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=WAIT_SECONDS) as http:
        yield streamable_http_client(url, http_client=http)


async def main():
    for use in (with_requests, with_a_stream):
        with anyio.fail_after(WAIT_SECONDS):
            async with server() as to_talon:
                await use(to_talon)
        print(use.__name__)


anyio.run(main)
print("all of it works")
