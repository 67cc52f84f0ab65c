"""Many sessions at once, each of which sends few messages.

usage: fleet_clients.py SESSIONS ROUNDS FOLDER DOMAIN=PORT [DOMAIN=PORT ...]

Logs in as user0, user1 and so on of each domain. When the file FOLDER/ROUND appears (0, 1 and so on), each session sends a message to
the next user of its domain, and waits until the server has acknowledged it (XEP-0198). Prints "ready" when all are logged in, "done
ROUND" after each round, and "sent BODY" for each message that the server has acknowledged. A session whose connection ends connects
again and resumes: it prints "resumed", or "lost" if the server has forgotten it. Ends after the last round, when the file FOLDER/end
appears.
"""

import asyncio
import base64
import os
import re
import sys


class Session:
    """One user's session."""

    def __init__(self, domain, port, number, count):
        self.domain, self.port, self.number = domain, port, number
        self.peer = f"user{(number + 1) % count}@{domain}"
        self.lock = asyncio.Lock()
        self.reader = self.writer = None
        # The id of the session for resumption, and the number of messages that were sent in it.
        self.id = None
        self.sent = 0

    async def read(self, text):
        """Reads until some text has come, and returns all up to it."""
        return await asyncio.wait_for(self.reader.readuntil(text.encode()), 60)

    def write(self, text):
        self.writer.write(text.encode())

    async def open(self):
        self.write(f"<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='{self.domain}' version='1.0'>")
        await self.read("</stream:features>")

    async def log_in(self):
        """Connects, and tries again if that fails. Returns the number of messages that the server has, if the session was resumed."""
        while True:
            try:
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
                await self.open()
                secret = base64.b64encode(f"\0user{self.number}\0secret".encode()).decode()
                self.write(f"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{secret}</auth>")
                await self.read("<success")
                await self.read(">")
                await self.open()
                if self.id:
                    # Nothing was acknowledged: the server sends again all that the session has received.
                    self.write(f"<resume xmlns='urn:xmpp:sm:3' previd='{self.id}' h='0'/>")
                    answer = await self.read_answer()
                    if "<resumed" in answer:
                        print("resumed", flush=True)
                        return int(re.search(r"\bh=['\"](\d+)", answer).group(1))
                    print("lost", flush=True)
                    self.id = None
                self.write("<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
                await self.read("</iq>")
                self.write("<enable xmlns='urn:xmpp:sm:3' resume='true'/>")
                await self.read("<enabled")
                answer = (await self.read(">")).decode()
                self.id, self.sent = re.search(r"\bid=['\"]([^'\"]+)", answer).group(1), 0
                return None
            except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
                self.close()
                await asyncio.sleep(0.3)

    async def read_answer(self):
        """Returns the answer to a resumption."""
        answer = ""
        while "<resumed" not in answer and "</failed>" not in answer:
            answer += (await self.read(">")).decode()
        return answer

    def close(self):
        if self.writer:
            self.writer.close()

    async def send(self, body):
        """Sends a message until the server has acknowledged it."""
        self.sent += 1
        while True:
            try:
                self.write(f"<message type='chat' id='{body}' to='{self.peer}'><body>{body}</body></message><r xmlns='urn:xmpp:sm:3'/>")
                await self.read("<a ")
                await self.read(">")
                print(f"sent {body}", flush=True)
                return
            except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
                self.close()
                known = await self.log_in()
                if known is None:
                    self.sent += 1
                elif known >= self.sent:
                    print(f"sent {body}", flush=True)
                    return


async def main():
    total, rounds, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    domains = [argument.split("=") for argument in sys.argv[4:]]
    count = total // len(domains)
    sessions = [Session(domain, int(port), number, count) for domain, port in domains for number in range(count)]
    gate = asyncio.Semaphore(50)

    async def begin(session):
        async with gate:
            await session.log_in()

    await asyncio.gather(*map(begin, sessions))
    print("ready", flush=True)

    async def wait(name):
        while not os.path.exists(f"{folder}/{name}"):
            await asyncio.sleep(0.05)

    for number in range(rounds):
        await wait(number)

        async def say(session):
            async with gate:
                await session.send(f"r{number}-u{session.number}-{session.domain.split('.')[0]}")

        await asyncio.gather(*map(say, sessions))
        print(f"done {number}", flush=True)
    await wait("end")


asyncio.run(main())
