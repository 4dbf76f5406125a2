"""The official Python client against `talon mcp`, with both of its ways to connect.

    client.py COMMAND ARGS…
"""

import asyncio
import sys

from mcp import Client, MCPError, StdioServerParameters


async def use(mode):
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with Client(server, mode=mode) as client:
        print(mode, client.protocol_version, client.server_info.name if client.server_info else "")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "kit__echo" in tools and "kit__for_people" not in tools, sorted(tools)
        assert tools["kit__echo"].annotations.read_only_hint is True, tools["kit__echo"]

        # The client checks structured content against the output schema.
        answer = await client.call_tool("kit__promised", {})
        assert not answer.is_error and answer.structured_content == {"sum": 3}, answer
        answer = await client.call_tool("kit__echo", {"text": "x", "list": ["a"], "count": 2})
        assert answer.structured_content == {"text": "x", "list": '["a"]', "count": "2"}, answer
        answer = await client.call_tool("kit__hostile", {})
        assert answer.content[0].text.count("[/plugin_output]") == 1, answer
        answer = await client.call_tool("kit__test_error_handling", {})
        assert answer.is_error and "intentionally" in answer.content[0].text, answer
        try:
            await client.call_tool("kit__nothing", {})
            raise AssertionError("a tool that is not there was called")
        except MCPError as error:
            assert "Unknown tool" in str(error), error

        told = []

        async def tell(progress, total, message):
            told.append((progress, total, message))

        await client.call_tool("kit__test_tool_with_progress", {}, progress_callback=tell)
        assert told and told == sorted(told), told


for mode in ("legacy", "auto"):
    asyncio.run(use(mode))
print("all of it works")
