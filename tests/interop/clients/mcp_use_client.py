"""mcp-use: a session of its client."""

import asyncio

import checks
from mcp_use import MCPClient


async def main():
    server = {"command": checks.COMMAND, "args": checks.ARGS, "env": checks.ENVIRONMENT}
    client = MCPClient.from_dict({"mcpServers": {"talon": server}})
    session = await client.create_session("talon")

    async def names():
        return [tool.name for tool in await session.list_tools()]

    async def call(name):
        return checks.Answer.of(await session.call_tool(name, {}))

    await checks.run(names, call)
    await client.close_all_sessions()


asyncio.run(main())
