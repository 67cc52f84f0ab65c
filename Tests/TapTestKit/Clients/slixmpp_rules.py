"""Two slixmpp clients, juliet behind a proxy with rules, romeo at the server itself: what each sees of what the other does.

Prints one JSON object a line per step; the last is `ended`, or `failed` with a reason (exit code 1).
`--act rules`: typing notifications, a bounce, a rewritten text, a hidden presence, the echo bot, a stream error.
`--act faults`: ten messages over a slow link, of which the tenth resets the connection.
"""

import argparse
import asyncio
import json
import logging
import ssl
import sys
import time

from slixmpp import ClientXMPP
from slixmpp.exceptions import IqError
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher.base import MatcherBase

CLIENT = "{jabber:client}"


def tell(event, **facts):
    print(json.dumps({"event": event, **facts}, ensure_ascii=False), flush=True)


class Anything(MatcherBase):
    def match(self, xml):
        return True


class Person(ClientXMPP):
    """A client that keeps what it gets."""

    def __init__(self, jid, password):
        super().__init__(jid, password)
        self.register_plugin("xep_0030")
        self.register_plugin("xep_0199")
        self.ssl_context.check_hostname = False
        self.ssl_context.verify_mode = ssl.CERT_NONE
        self.seen = []
        self.news = asyncio.Event()
        self.failure = None
        loop = asyncio.get_event_loop()
        self.started = loop.create_future()
        self.ended = loop.create_future()
        self.register_handler(Callback("everything", Anything(None), self.on_stanza))
        self.add_event_handler("session_start", lambda _: self.started.set_result(None))
        self.add_event_handler("failed_all_auth", lambda _: self.started.set_exception(RuntimeError("no login")))
        self.add_event_handler("stream_error", self.on_error)
        self.add_event_handler("disconnected", self.on_disconnected)

    def on_stanza(self, stanza):
        self.seen.append(stanza.xml)
        self.news.set()

    def on_error(self, error):
        self.failure = error["condition"]

    def on_disconnected(self, _):
        # It would connect again.
        self.cancel_connection_attempt()
        if not self.ended.done():
            self.ended.set_result(None)

    async def enter(self, port):
        self.connect(("127.0.0.1", port), force_starttls=True)
        await asyncio.wait_for(self.started, 60)
        await self.get_roster(timeout=30)
        self.send_presence()
        await self.settle()

    async def settle(self):
        await self["xep_0199"].ping(self.boundjid.domain, timeout=60)

    async def wait(self, what, step, seconds=60):
        end = time.monotonic() + seconds
        while not any(what(xml) for xml in self.seen):
            self.news.clear()
            try:
                await asyncio.wait_for(self.news.wait(), max(0.01, end - time.monotonic()))
            except asyncio.TimeoutError:
                raise RuntimeError(f"{self.boundjid.user} waits in vain: {step}") from None

    def say(self, to, body, extra="", number=""):
        self.send_raw(f"<message to='{to}' type='chat' id='m{number}'>{extra}<body>{body}</body></message>")

    def bodies(self):
        messages = [xml for xml in self.seen if xml.tag == CLIENT + "message"]
        return [xml.findtext(CLIENT + "body") for xml in messages]


def text(body):
    return lambda xml: xml.findtext(CLIENT + "body") == body


async def obey(juliet, romeo):
    other = romeo.boundjid.full
    state = "<composing xmlns='http://jabber.org/protocol/chatstates'/>"
    juliet.send_raw(f"<message to='{other}' type='chat'>{state}</message>")
    juliet.say(other, "the first", state)
    await romeo.wait(text("the first"), "the first message")
    states = [child.tag for xml in romeo.seen for child in xml if "chatstates" in child.tag]
    tell("typed", bodies=romeo.bodies(), states=states)

    iq = juliet.make_iq_set()
    iq.enable("roster")
    iq["roster"].set_items({"tybalt@localhost": {"name": "Tybalt"}})
    try:
        await iq.send(timeout=30)
        tell("changed")
    except IqError as error:
        tell("bounced", condition=error.condition, text=error.text, type=error.etype)

    juliet.say(other, "call 555-1234 now")
    await romeo.wait(lambda xml: "call" in (xml.findtext(CLIENT + "body") or ""), "the rewritten message")
    tell("rewritten", bodies=romeo.bodies()[-1:])

    large = "x" * 6000
    juliet.say(other, large)
    await romeo.wait(text(large), "the message beyond the limit of an item")
    tell("large")

    juliet.send_presence(pto=other, pstatus="secret")
    juliet.say(other, "behind the presence")
    await romeo.wait(text("behind the presence"), "the message behind the presence")
    tell("hidden", presences=[xml.get("from") for xml in romeo.seen if xml.findtext(CLIENT + "status") == "secret"])

    juliet.say("echo@example.net", "Is there anybody?")
    await juliet.wait(text("Is there anybody?"), "the echo")
    await juliet.settle()
    senders = [xml.get("from") for xml in juliet.seen if xml.findtext(CLIENT + "body") == "Is there anybody?"]
    tell("echoed", senders=senders)

    juliet.say("bot@example.com", "crash")
    await asyncio.wait_for(juliet.ended, 30)
    tell("broken", condition=juliet.failure)


async def suffer(juliet, romeo):
    other = romeo.boundjid.full
    began = time.monotonic()
    juliet.say(other, "x" * 8000)
    await romeo.wait(lambda xml: len(xml.findtext(CLIENT + "body") or "") == 8000, "the long message")
    tell("slow", seconds=time.monotonic() - began)
    for number in range(2, 11):
        juliet.say(other, f"number {number}", number=number)
    await asyncio.wait_for(juliet.ended, 60)
    await romeo.wait(text("number 9"), "the ninth message")
    await romeo.settle()
    tell("reset", bodies=[body for body in romeo.bodies() if body and body.startswith("number")])


async def main(options):
    juliet = Person(*options.juliet)
    romeo = Person(*options.romeo)
    try:
        await romeo.enter(options.direct)
        await juliet.enter(options.port)
        tell("ready")
        await (obey if options.act == "rules" else suffer)(juliet, romeo)
    except Exception as problem:  # whatever it is, the test is to read of it
        tell("failed", reason=f"{type(problem).__name__}: {problem}")
        return 1
    await asyncio.wait_for(asyncio.shield(romeo.disconnect(wait=1)), 5)
    tell("ended")
    return 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("juliet", "romeo"):
        parser.add_argument(f"--{name}", nargs=2, metavar=("JID", "PASSWORD"), required=True)
    parser.add_argument("--port", type=int, required=True, help="the proxy")
    parser.add_argument("--direct", type=int, required=True, help="the server")
    parser.add_argument("--act", choices=["rules", "faults"], required=True)
    return parser.parse_args()


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    sys.exit(asyncio.get_event_loop().run_until_complete(main(parse())))
