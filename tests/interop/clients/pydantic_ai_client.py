"""Pydantic AI: a toolset of an agent."""

import asyncio

import checks
from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset


async def main():
    received = []

    async def receive(done, total, message):
        received.append(done)

    transport = StdioTransport(checks.COMMAND, checks.ARGS, env=checks.ENVIRONMENT)
    toolset = MCPToolset(transport, tool_error_behavior="error", progress_handler=receive, read_timeout=60)
    async with toolset as server:

        async def names():
            return [tool.name for tool in await server.list_tools()]

        async def call(name):
            # It raises an answer that is an error, and gives the model structured content in place of the text.
            result = await server.direct_call_tool(name, {})
            parts = result if isinstance(result, list) else [result]
            texts = [part for part in parts if isinstance(part, str)]
            structured = next((part for part in parts if isinstance(part, dict)), None)
            kinds = [getattr(part, "media_type", "text").split("/")[0] for part in parts]
            return checks.Answer(texts, False, structured, kinds)

        async def progress(name):
            await call(name)
            return received

        await checks.run(names, call, progress)


asyncio.run(main())
