"""Mail servers, outside of any jail: aiosmtpd, and two that are up to no good.

mail_server.py LOG CERTIFICATE KEY STRANGE_CERTIFICATE STRANGE_KEY. Prints the ports of those in main, appends a line of JSON
to LOG for each message, and ends with its standard input. The login is ada:secret. What it answers is in the receiver's name.
"""

import asyncio
import email
import email.policy
import json
import logging
import os
import ssl
import sys
import threading
import warnings

from aiosmtpd.smtp import SMTP, AuthResult

_, LOG, CERTIFICATE, KEY, STRANGE_CERTIFICATE, STRANGE_KEY = sys.argv

# It warns of what is tested.
logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")

asked = {}


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        asked[address] = asked.get(address, 0) + 1
        name = address.partition("@")[0]
        if name == "gone":
            return "550 5.1.1 no such user\x1b[31m here"
        if name == "later" and asked[address] == 1:
            return "451 4.7.1 greylisted"
        if name == "silent":
            await asyncio.Event().wait()
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        if any(address.startswith("spam") for address in envelope.rcpt_tos):
            return "554 5.7.1 this looks like spam"
        if any(address.startswith("full") for address in envelope.rcpt_tos):
            return "452 4.3.1 no space"
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        line = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "headers": dict(message.items()),
            "text": message.get_content(),
            "tls": server.transport.get_extra_info("sslcontext") is not None,
            "user": session.auth_data,
        }
        with open(LOG, "a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")
        return "250 2.0.0 taken"


def authenticate(server, session, envelope, mechanism, data):
    right = data.login == b"ada" and data.password == b"secret"
    if not right:
        return AuthResult(success=False, handled=False)
    return AuthResult(success=True, auth_data="ada")


def context(certificate, key):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificate, key)
    return made


TLS = context(CERTIFICATE, KEY)
STRANGE = context(STRANGE_CERTIFICATE, STRANGE_KEY)


def smtp(**options):
    return lambda: SMTP(Handler(), hostname="mail.example.test", **options)


login = {"authenticator": authenticate, "auth_required": True}


class Injects(asyncio.Protocol):
    """Says it has STARTTLS, and puts answers of somebody on the way behind the one to it."""

    def connection_made(self, transport):
        self.transport = transport
        transport.write(b"220 hello\r\n")

    def data_received(self, data):
        word = data[:4].upper()
        if word == b"EHLO":
            self.transport.write(b"250-hello\r\n250 STARTTLS\r\n")
        elif word == b"STAR":
            self.transport.write(b"220 go ahead\r\n250-mail.example.test\r\n250 AUTH PLAIN LOGIN\r\n")
            self.transport.pause_reading()
            asyncio.get_running_loop().create_task(self.encrypt())

    async def encrypt(self):
        loop = asyncio.get_running_loop()
        try:
            await loop.start_tls(self.transport, smtp(**login, auth_require_tls=False)(), TLS, server_side=True)
        except (OSError, ssl.SSLError):
            pass


class Silent(asyncio.Protocol):
    """Takes connections, and says nothing."""


async def main():
    loop = asyncio.get_running_loop()
    servers = [
        (smtp(**login, tls_context=TLS, require_starttls=True), None),
        (smtp(**login, auth_require_tls=False), TLS),
        (smtp(), None),
        (smtp(**login, tls_context=STRANGE, require_starttls=True), None),
        (Injects, None),
        (Silent, None),
    ]
    ports = []
    for factory, tls in servers:
        server = await loop.create_server(factory, "127.0.0.1", 0, ssl=tls)
        ports.append(server.sockets[0].getsockname()[1])
    print(*ports, flush=True)
    await asyncio.Event().wait()


def end():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end, daemon=True).start()
asyncio.run(main())
