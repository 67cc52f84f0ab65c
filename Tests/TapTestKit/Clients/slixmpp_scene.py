"""Two slixmpp clients in one scene: they become contacts, one shows an avatar, they meet in a room.

Each step waits for what the other side must see of it, so a log of the scene always has the same order.
Prints one JSON object a line per step: {"event": STEP}; the last is `ended`, or `failed` with a reason (exit code 1).
"""

import argparse
import asyncio
import base64
import json
import logging
import sys

from slixmpp import ClientXMPP
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher.base import MatcherBase

# A PNG of one pixel.
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CLIENT = "{jabber:client}"
USER = "{http://jabber.org/protocol/muc#user}"


def tell(event, **facts):
    print(json.dumps({"event": event, **facts}), flush=True)


class Anything(MatcherBase):
    def match(self, xml):
        return True


class Person(ClientXMPP):
    """A client that does nothing by itself, and lets one wait for a stanza."""

    def __init__(self, jid, password):
        self.numbers = 0  # before the base class makes its first id
        super().__init__(jid, password)
        self.waiters = []
        self.seen = []
        self.roster.auto_authorize = None
        self.roster.auto_subscribe = False
        for plugin in ("xep_0030", "xep_0045", "xep_0060", "xep_0084", "xep_0115", "xep_0163", "xep_0199"):
            self.register_plugin(plugin)
        self["feature_mechanisms"].unencrypted_plain = True
        self.register_handler(Callback("everything", Anything(None), self.on_stanza))
        self.started = asyncio.get_event_loop().create_future()
        self.add_event_handler("session_start", lambda _: self.started.set_result(None))
        for event in ("failed_all_auth", "connection_failed"):
            self.add_event_handler(event, lambda reason: self.started.set_exception(RuntimeError(str(reason))))

    def new_id(self):
        # Short, and the same each time: a log is to be read.
        self.numbers += 1
        return f"{self.requested_jid.user[0]}{self.numbers}"

    def on_stanza(self, stanza):
        self.seen.append(stanza.xml)
        for waiter in list(self.waiters):
            if waiter[0](stanza.xml) and not waiter[1].done():
                waiter[1].set_result(stanza)

    async def wait(self, what, step):
        """Waits for a stanza that `step` has brought or brings: `what` tells whether an element is it."""
        for xml in self.seen:
            if what(xml):
                self.seen.clear()
                return
        waiter = (what, asyncio.get_event_loop().create_future())
        self.waiters.append(waiter)
        try:
            await asyncio.wait_for(waiter[1], 15)
        except asyncio.TimeoutError:
            raise RuntimeError(f"{self.boundjid.user} waits in vain: {step}") from None
        finally:
            self.waiters.remove(waiter)
            self.seen.clear()

    async def enter(self, port):
        self.connect(("127.0.0.1", port), disable_starttls=True, force_starttls=False)
        await asyncio.wait_for(self.started, 15)
        await self.get_roster()
        self.send_presence()
        # Its own presence comes back to it.
        await self.wait(presence(self.boundjid.full), "own presence")
        tell("online", jid=self.boundjid.full)

    async def settle(self):
        """Until all that is on its way to this client has come: the server answers in order."""
        await self["xep_0199"].ping(self.boundjid.domain, timeout=10)


def presence(sender, kind=None):
    return lambda xml: xml.tag == CLIENT + "presence" and xml.get("from") == sender and xml.get("type") == kind


def message(sender, child=CLIENT + "body"):
    return lambda xml: xml.tag == CLIENT + "message" and xml.get("from") == sender and xml.find(child) is not None


async def become_contacts(juliet, romeo):
    juliet.send_presence(pto=romeo.boundjid.bare, ptype="subscribe")
    await romeo.wait(presence(juliet.boundjid.bare, "subscribe"), "the request")
    tell("asked")
    romeo.send_presence(pto=juliet.boundjid.bare, ptype="subscribed")
    await juliet.wait(presence(romeo.boundjid.full), "presence after the approval")
    romeo.send_presence(pto=juliet.boundjid.bare, ptype="subscribe")
    await juliet.wait(presence(romeo.boundjid.bare, "subscribe"), "the request in return")
    juliet.send_presence(pto=romeo.boundjid.bare, ptype="subscribed")
    await romeo.wait(presence(juliet.boundjid.full), "presence after the second approval")
    tell("contacts")


async def show_avatar(juliet, romeo):
    avatar = juliet["xep_0084"]
    await avatar.publish_avatar(PICTURE)
    name = avatar.generate_id(PICTURE)
    await avatar.publish_avatar_metadata(
        {"id": name, "bytes": str(len(PICTURE)), "type": "image/png", "width": "1", "height": "1"}
    )
    await romeo.wait(
        message(juliet.boundjid.bare, "{http://jabber.org/protocol/pubsub#event}event"), "the avatar's event"
    )
    await romeo["xep_0084"].retrieve_avatar(juliet.boundjid.bare, name)
    tell("avatar")


async def meet(juliet, romeo, room):
    def join(person, nick):
        stanza = person.make_presence(pto=f"{room}/{nick}")
        stanza.enable("muc_join")
        stanza.send()

    join(juliet, "juliet")
    await juliet.wait(message(room, CLIENT + "subject"), "the room's subject")
    await juliet["xep_0045"].set_room_config(room, juliet["xep_0004"].make_form("submit"))
    juliet["xep_0045"].invite(room, romeo.boundjid.bare, reason="Come")
    await romeo.wait(message(room, USER + "x"), "the invitation")
    join(romeo, "romeo")
    await romeo.wait(message(room, CLIENT + "subject"), "the room's subject")
    await juliet.wait(presence(f"{room}/romeo"), "romeo in the room")
    juliet["xep_0045"].set_subject(room, "What's in a name?")
    await romeo.wait(message(f"{room}/juliet", CLIENT + "subject"), "the new subject")
    romeo.send_message(mto=room, mbody="I take thee at thy word", mtype="groupchat")
    await juliet.wait(message(f"{room}/romeo"), "what romeo says")
    romeo.send_presence(pto=f"{room}/montague")
    await romeo.wait(presence(f"{room}/montague"), "the new nickname")
    await juliet.wait(presence(f"{room}/montague"), "the new nickname")
    await juliet["xep_0045"].set_role(room, "montague", "none")
    await romeo.wait(presence(f"{room}/montague", "unavailable"), "the end of the stay")
    juliet.send_presence(pto=f"{room}/juliet", ptype="unavailable")
    await juliet.wait(presence(f"{room}/juliet", "unavailable"), "the end of the stay")
    tell("met")


async def main(options):
    juliet = Person(*options.juliet)
    romeo = Person(*options.romeo)
    try:
        await juliet.enter(options.port)
        await romeo.enter(options.port)
        await become_contacts(juliet, romeo)
        await show_avatar(juliet, romeo)
        await meet(juliet, romeo, options.room)
        for person in (romeo, juliet):
            await person.settle()
    except Exception as problem:  # whatever it is, the test is to read of it
        tell("failed", reason=f"{type(problem).__name__}: {problem}")
        return 1
    for person in (romeo, juliet):
        await asyncio.wait_for(asyncio.shield(person.disconnect(wait=1)), 5)
    tell("ended")
    return 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("juliet", "romeo"):
        parser.add_argument(f"--{name}", nargs=2, metavar=("JID", "PASSWORD"), required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--room", metavar="JID", required=True)
    return parser.parse_args()


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    sys.exit(asyncio.get_event_loop().run_until_complete(main(parse())))
