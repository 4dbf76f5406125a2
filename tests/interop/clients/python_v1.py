"""The official Python SDK before 2.0: `ClientSession`."""

import asyncio

import checks
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    server = StdioServerParameters(command=checks.COMMAND, args=checks.ARGS, env=checks.ENVIRONMENT)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()

        async def names():
            return [tool.name for tool in (await session.list_tools()).tools]

        async def call(name):
            return checks.Answer.of(await session.call_tool(name, {}))

        await checks.run(names, call, checks.progress_of(session, "progress_callback"))


asyncio.run(main())
