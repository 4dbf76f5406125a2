"""FastMCP's client."""

import asyncio

import checks
from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main():
    async with Client(StdioTransport(checks.COMMAND, checks.ARGS, env=checks.ENVIRONMENT)) as client:

        async def names():
            return [tool.name for tool in await client.list_tools()]

        async def call(name):
            # It raises an answer that is an error.
            return checks.Answer.of(await client.call_tool(name, {}))

        await checks.run(names, call, checks.progress_of(client, "progress_handler"))


asyncio.run(main())
