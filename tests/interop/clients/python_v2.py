"""The official Python SDK from 2.0 on: `Client`."""

import asyncio

import checks
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    server = StdioServerParameters(command=checks.COMMAND, args=checks.ARGS, env=checks.ENVIRONMENT)
    async with Client(stdio_client(server)) as client:

        async def names():
            return [tool.name for tool in (await client.list_tools()).tools]

        async def call(name):
            return checks.Answer.of(await client.call_tool(name, {}))

        await checks.run(names, call, checks.progress_of(client, "progress_callback"))


asyncio.run(main())
