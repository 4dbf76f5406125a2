"""A client of the gateway's WebSocket with Debian's python3-websockets: sends one message as JSON, and prints every
event, a line each, until the turn has ended. Arguments: URL, token, message."""

import asyncio
import json
import sys

import websockets


async def main(url: str, token: str, message: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with websockets.connect(url, extra_headers=headers) as socket:
        await (await socket.ping())
        await socket.send(message)
        async for text in socket:
            print(text, flush=True)
            if json.loads(text)["type"] in ("agent.response.end", "error"):
                return


asyncio.run(main(*sys.argv[1:]))
