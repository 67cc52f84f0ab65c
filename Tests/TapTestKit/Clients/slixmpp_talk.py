"""Two slixmpp clients talk, and one of them loses its connection again and again and resumes its stream (XEP-0198).

Juliet connects through a relay of this script to the port that is tested, Romeo to the server itself. Each sends the other
numbered messages. Three times juliet's connection is lost while both write: it is reset, or its other end is not told.
Prints one JSON object a line: {"event": ...}. Events: ready, lost, resumed, refused, sent (all messages), counted,
failed.
Exit code: 0 when all was sent and juliet's stream lasted, 1 otherwise (a `failed` event says why).
"""

import argparse
import asyncio
import json
import logging
import os
import ssl
import sys

from slixmpp import ClientXMPP
from slixmpp.plugins.xep_0198 import XEP_0198, stanza as sm
from slixmpp.stanza import Message


def tell(event, **facts):
    print(json.dumps({"event": event, **facts}), flush=True)


class Management(XEP_0198):
    """slixmpp forgets what is not acknowledged when it resumes; an honest client sends it again."""

    outgoing = XEP_0198._handle_outgoing

    def _handle_outgoing(self, stanza):
        if isinstance(stanza, sm.Resume):
            self.enabled_out = True
            return stanza
        return Management.outgoing(self, stanza)


XEP_0198._handle_outgoing = Management._handle_outgoing


class Relay:
    """Passes the bytes of one connection at a time."""

    def __init__(self, port):
        self.upstream = port
        self.near = self.far = None
        self.silent = []

    async def start(self):
        server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        return server.sockets[0].getsockname()[1]

    async def accept(self, reader, near):
        try:
            far_reader, far = await asyncio.open_connection("127.0.0.1", self.upstream)
        except OSError:
            return near.transport.abort()
        self.near, self.far = near, far
        await asyncio.gather(self.pump(reader, far), self.pump(far_reader, near))

    async def pump(self, reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        if writer not in self.silent:
            writer.close()

    def lose(self, silently):
        """Cuts the connection; silently: its far end stays open, as behind a network that is gone."""
        if silently:
            self.silent.append(self.far)
        else:
            self.far.transport.abort()
        self.near.transport.abort()


class Talker(ClientXMPP):
    def __init__(self, account, options, port, manages=False):
        super().__init__(*account)
        self.port = port
        self.heard = []
        self.started = asyncio.get_event_loop().create_future()
        self.resumed = None
        self.is_patient = options.wait
        self.register_plugin("xep_0030")
        self.register_plugin("xep_0199")
        self.manages = manages
        if manages:
            self.register_plugin("xep_0198")
            self.add_event_handler("session_resumed", lambda _: self.resumed.set_result(True))
            self.add_event_handler("sm_failed", self.on_refused)
            self.ca_certs = options.ca
        else:
            self.ssl_context.check_hostname = False
            self.ssl_context.verify_mode = ssl.CERT_NONE
        self.over = asyncio.get_event_loop().create_future()
        self.add_event_handler("session_start", lambda _: self.started.done() or self.started.set_result(True))
        self.add_event_handler("message", self.hear)
        self.add_event_handler("disconnected", self.on_disconnected)
        self.add_event_handler("failed_all_auth", lambda _: self.fail("no mechanism was accepted"))
        self.add_event_handler("stream_error", lambda error: self.fail("stream error: " + error["condition"]))

    def fail(self, reason):
        if not self.over.done():
            self.over.set_exception(RuntimeError(f"{self.requested_jid.user}: {reason}"))

    def begin(self):
        self.connect(("127.0.0.1", self.port), force_starttls=True)

    def on_disconnected(self, reason):
        if self.resumed is not None and not self.resumed.done():
            # Who refuses a connection refuses the next one, too, for a while.
            return asyncio.get_event_loop().call_later(0.1, self.begin) if self.is_patient else self.begin()
        self.fail(f"the connection was closed: {reason or ''}")

    def on_refused(self, _):
        if self.is_patient:
            return self.resumed.set_result(False)
        self.fail("the stream could not be resumed")

    def hear(self, message):
        self.heard.append(message["id"])

    async def enter(self):
        self.begin()
        await asyncio.wait_for(self.started, 30)
        await self.get_roster()
        self.send_presence()
        await self["xep_0199"].ping(self.boundjid.domain, timeout=20)

    def say(self, to, number):
        message = self.make_message(mto=to, mbody=f"Message {number}", mtype="chat")
        message["id"] = f"{self.boundjid.user}-{number}"
        message.send()

    async def lose(self, relay, silently):
        """Loses the connection when all that was said is counted, wherever its bytes are, and resumes the stream."""
        while not self.waiting_queue.empty():
            await asyncio.sleep(0)
        tell("lost", silently=silently)
        self.resumed = asyncio.get_event_loop().create_future()
        self.end_session_on_disconnect = False
        relay.lose(silently)
        self.transport.abort()
        await asyncio.wait_for(self.resumed, 40)
        tell("resumed")

    async def settle(self):
        """Until the server has acknowledged all that was sent."""
        management = self["xep_0198"]
        for _ in range(200):
            management.request_ack()
            await asyncio.sleep(0.1)
            if not management.unacked_queue and management.last_ack == management.seq:
                return
        raise RuntimeError(f"{management.last_ack} acknowledged of {management.seq}")


class Miscounting:
    """Leaves one stanza out of the count of those that were handled."""

    def __init__(self, management, id):
        self.id = id
        self.count = management._handle_incoming
        management.xmpp.del_filter("in", management._handle_incoming)
        management.xmpp.add_filter("in", self.incoming)

    def incoming(self, stanza):
        return stanza if isinstance(stanza, Message) and stanza["id"] == self.id else self.count(stanza)


async def talk(options, juliet, romeo, relay):
    await juliet.enter()
    await romeo.enter()
    if options.miscount:
        Miscounting(juliet["xep_0198"], options.miscount)
    tell("ready", jid=str(juliet.boundjid))
    await asyncio.sleep(options.rest)
    if options.wait:
        juliet.resumed = asyncio.get_event_loop().create_future()
        juliet.end_session_on_disconnect = False
        tell("lost")
        return tell("resumed" if await juliet.resumed else "refused")
    losses = [options.messages * (index + 1) // (options.cuts + 1) for index in range(options.cuts)]

    async def write(talker, other):
        for number in range(1, options.messages + 1):
            talker.say(other.boundjid.bare, number)
            await asyncio.sleep(options.pause)
            if talker is juliet and number in losses:
                await juliet.lose(relay, silently=losses.index(number) % 2 == 1)

    await asyncio.gather(write(juliet, romeo), write(romeo, juliet))
    tell("sent")
    # What others do meanwhile comes to an end.
    await asyncio.sleep(options.rest)
    await juliet["xep_0199"].ping(juliet.boundjid.domain, timeout=20)
    await juliet.settle()
    await romeo["xep_0199"].ping(romeo.boundjid.domain, timeout=20)
    await juliet["xep_0199"].ping(juliet.boundjid.domain, timeout=20)
    await juliet.settle()
    management = juliet["xep_0198"]
    tell("counted", juliet=juliet.heard, romeo=romeo.heard, handled=management.handled, sent=management.seq)


async def main(options):
    relay = Relay(options.port)
    juliet = Talker(options.juliet, options, await relay.start(), manages=True)
    romeo = Talker(options.romeo, options, options.server)
    talking = asyncio.ensure_future(talk(options, juliet, romeo, relay))
    done, _ = await asyncio.wait(
        [talking, juliet.over, romeo.over], timeout=options.timeout, return_when=asyncio.FIRST_COMPLETED
    )
    problem = next((task.exception() for task in done if task.exception()), None)
    if problem or talking not in done:
        tell("failed", reason=f"{type(problem).__name__}: {problem}" if problem else "not done in time")
        return 1
    for talker in (juliet, romeo):
        talker.over.cancel()
        await asyncio.wait_for(asyncio.shield(talker.disconnect(wait=1)), 10)
    return 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("juliet", "romeo"):
        parser.add_argument(f"--{name}", nargs=2, metavar=("JID", "PASSWORD"), required=True)
    parser.add_argument("--port", type=int, required=True, help="where juliet connects")
    parser.add_argument("--server", type=int, required=True, help="where romeo connects")
    parser.add_argument("--ca", required=True, help="file of certificates to verify juliet's server with")
    parser.add_argument("--messages", type=int, default=200, help="messages each way")
    parser.add_argument("--cuts", type=int, default=3, help="how often juliet's connection is lost")
    parser.add_argument("--pause", metavar="SECONDS", type=float, default=0.01, help="after each message")
    parser.add_argument("--rest", metavar="SECONDS", type=float, default=1, help="say nothing before the first message, and behind the last")
    parser.add_argument("--wait", action="store_true", help="say nothing; wait for a loss of juliet's connection")
    parser.add_argument("--miscount", metavar="ID", help="juliet does not count the message with this id")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=120)
    parser.add_argument("--debug", action="store_true", help="slixmpp's own log on standard error")
    return parser.parse_args()


if __name__ == "__main__":
    flags = parse()
    logging.basicConfig(level=logging.DEBUG if flags.debug else logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    code = asyncio.get_event_loop().run_until_complete(main(flags))
    # Connections that were lost without a word are still there, and Python trips over them when it cleans up.
    sys.stdout.flush()
    os._exit(code)
