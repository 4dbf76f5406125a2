"""Fetches a URL with a library, as its documentation begins.   client.py LIBRARY URL"""

import sys

library, url = sys.argv[1:]

if library == "requests":
    import requests

    print(requests.get(url).text)
elif library == "httpx":
    import httpx

    print(httpx.get(url).text)
elif library == "urllib":
    import urllib.request

    print(urllib.request.urlopen(url).read().decode())
else:
    import asyncio

    import aiohttp

    async def fetch():
        # aiohttp reads the variables of a proxy only when it is asked to.
        async with aiohttp.ClientSession(trust_env=library == "aiohttp-trust-env") as session:
            async with session.get(url) as response:
                response.raise_for_status()
                print(await response.text())

    asyncio.run(fetch())
