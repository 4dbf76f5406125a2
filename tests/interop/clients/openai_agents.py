"""The OpenAI Agents SDK: a server of an agent."""

import asyncio

import checks
from agents.mcp import MCPServerStdio


async def main():
    parameters = {"command": checks.COMMAND, "args": checks.ARGS, "env": checks.ENVIRONMENT}
    async with MCPServerStdio(parameters, client_session_timeout_seconds=60) as server:

        async def names():
            return [tool.name for tool in await server.list_tools()]

        async def call(name):
            return checks.Answer.of(await server.call_tool(name, {}))

        await checks.run(names, call)


asyncio.run(main())
