"""Many slixmpp clients write to each other and in a room, with carbon copies (XEP-0280), and request archives (XEP-0313).

Each account has two clients, one for each port. Prints one JSON object a line: {"event": ...}. Events: online, sent, counted, failed.
`counted` has, for each message that was sent, its id, its text, and the number of stanzas by which it passed a port: as it was sent, as
it was received, in a carbon copy, and in a result of an archive.
Exit code: 0 when all messages were sent and counted, 1 otherwise (a `failed` event says why).
"""

import argparse
import asyncio
import collections
import json
import logging
import random
import sys

from slixmpp import ClientXMPP
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher.base import MatcherBase

CLIENT = "{jabber:client}"
FORWARDED = "{urn:xmpp:forward:0}forwarded"
TEXTS = ["ok", "It's in the 'drawer'; -- \\", "合同在这里", "한국어 계약", "<&> \"élan\" 🎉", "line\nline"]


def tell(event, **facts):
    print(json.dumps({"event": event, **facts}), flush=True)


class Messages(MatcherBase):
    def match(self, xml):
        return xml.tag == CLIENT + "message"


class Member(ClientXMPP):
    def __init__(self, name, options, port, counts):
        self.has_priority = port == options.ports[0]
        super().__init__(f"{name}@{options.domain}/{'desk' if self.has_priority else 'phone'}", options.password)
        self.port, self.counts = port, counts
        self.numbers = 0
        for plugin in ("xep_0030", "xep_0045", "xep_0199", "xep_0280", "xep_0313"):
            self.register_plugin(plugin)
        self["feature_mechanisms"].unencrypted_plain = True
        self.register_handler(Callback("messages", Messages(None), self.count))
        self.started = asyncio.get_event_loop().create_future()
        self.joined = asyncio.get_event_loop().create_future()
        self.add_event_handler("session_start", lambda _: self.started.done() or self.started.set_result(None))
        for event in ("failed_all_auth", "connection_failed", "stream_error", "disconnected"):
            self.add_event_handler(event, self.on_fault)

    def on_fault(self, reason):
        if not self.started.done():
            self.started.set_exception(RuntimeError(f"{self.requested_jid}: {reason}"))

    def count(self, stanza):
        message = stanza.xml
        if message.get("type") == "groupchat" and message.find(CLIENT + "subject") is not None:
            # A room sends its subject at the end of the join.
            return self.joined.done() or self.joined.set_result(None)
        inner = next((child for child in message.iter(FORWARDED)), None)
        message = message if inner is None else inner.find(CLIENT + "message")
        if message is not None and message.find(CLIENT + "body") is not None:
            self.counts[message.get("id")] += 1

    async def enter(self):
        self.connect(("127.0.0.1", self.port), disable_starttls=True, force_starttls=False)
        await self.started
        await self["xep_0280"].enable()
        self.send_presence(ppriority=5 if self.has_priority else 0)

    async def join(self, room):
        presence = self.make_presence(pto=f"{room}/{self.requested_jid.user}-{self.requested_jid.resource}")
        presence.enable("muc_join")
        presence.send()
        await self.joined

    def say(self, to, kind, sent):
        self.numbers += 1
        # Texts are repeated; ids are not.
        text = random.choice(TEXTS)
        message = self.make_message(mto=to, mbody=text, mtype=kind)
        message["id"] = f"{self.requested_jid.user}-{self.requested_jid.resource}-{self.numbers}"
        message.send()
        sent.append({"id": message["id"], "body": text, "type": kind})
        self.counts[message["id"]] += 1

    async def settle(self):
        """Waits until all that the server has sent to this client has arrived: it answers in order."""
        await self["xep_0199"].ping(self.boundjid.domain, timeout=60)

    async def read_archive(self, archive=None):
        async for _ in self["xep_0313"].iterate(jid=archive, rsm={"max": 20}):
            pass


async def talk(options, members, counts):
    await asyncio.gather(*(member.enter() for member in members))
    await asyncio.gather(*(member.join(options.room) for member in members))
    tell("online", clients=len(members))
    sent = []

    async def write(member):
        for number in range(options.messages):
            if number % 4 == 3:
                member.say(options.room, "groupchat", sent)
            else:
                # Also to the account's own other client.
                member.say(random.choice(members).requested_jid.bare, "chat", sent)
            await asyncio.sleep(0)

    await asyncio.gather(*(write(member) for member in members))
    # The first round ends when the server has read all messages, the second one when all clients have their copies.
    for _ in range(2):
        await asyncio.gather(*(member.settle() for member in members))
    tell("sent", messages=len(sent))
    for index, member in enumerate(members):
        await member.read_archive()
        if index < 2:
            await member.read_archive(options.room)
    for member in members:
        await member.settle()
    tell("counted", messages=[{**message, "copies": counts[message["id"]]} for message in sent])


async def main(options):
    counts = collections.Counter()
    names = [f"member{number}" for number in range(options.accounts)]
    members = [Member(name, options, port, counts) for name in names for port in options.ports]
    try:
        await asyncio.wait_for(talk(options, members, counts), options.timeout)
    except Exception as problem:
        tell("failed", reason=f"{type(problem).__name__}: {problem}")
        return 1
    for member in members:
        await asyncio.wait_for(asyncio.shield(member.disconnect(wait=1)), 10)
    return 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--domain", required=True)
    parser.add_argument("--accounts", type=int, required=True, help="number of accounts: member0, member1, ...")
    parser.add_argument("--password", required=True)
    parser.add_argument("--ports", type=int, nargs=2, required=True)
    parser.add_argument("--room", metavar="JID", required=True)
    parser.add_argument("--messages", type=int, required=True, help="messages of each client")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=120)
    return parser.parse_args()


if __name__ == "__main__":
    flags = parse()
    random.seed(flags.seed)
    logging.basicConfig(level=logging.CRITICAL)
    sys.exit(asyncio.get_event_loop().run_until_complete(main(flags)))
