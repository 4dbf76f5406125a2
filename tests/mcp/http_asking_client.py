"""The official Python client against `talon mcp --http`, asked by a tool, in both of its ways to connect.

    http_asking_client.py URL TOKEN
"""

import asyncio
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

URL, TOKEN = sys.argv[1:3]


async def use(mode):
    asked = []

    async def answer(_, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"seat": "aisle", "bags": 1})

    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(URL, http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=answer) as client:
            result = await client.call_tool("fly__book", {"flight": "T1"})
            text = result.content[0].text
            assert '"seat":"aisle","bags":1' in text, result
            assert len(asked) == 1 and asked[0].endswith("> Which seat on T1?"), asked
            print(mode, client.protocol_version)


for mode in ("legacy", "auto"):
    asyncio.run(use(mode))
print("both were asked")
