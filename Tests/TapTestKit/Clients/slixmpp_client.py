"""A scripted XMPP client: logs in with slixmpp, does what the flags ask, prints one JSON object a line per happening.

Events: connected, tls, bound, roster, present, pong, avatar, archive, resumed, sent, received, ready, acknowledged, failed,
disconnected.
`ready` comes after the roster, the presence and the pings; only then are messages sent and waited for.
Exit code: 0 when everything asked for was done, 1 otherwise (a `failed` event says why).
"""

import argparse
import asyncio
import hashlib
import json
import logging
import socket
import ssl
import sys

from slixmpp import ClientXMPP
from slixmpp.exceptions import IqError, IqTimeout


def tell(event, **facts):
    print(json.dumps({"event": event, **facts}, ensure_ascii=False), flush=True)


class Client(ClientXMPP):
    def __init__(self, options):
        super().__init__(options.jid, options.password, sasl_mech=options.mechanism)
        self.options = options
        self.received = asyncio.Queue()
        self.done = asyncio.get_event_loop().create_future()
        self.facts = set()
        self.register_plugin("xep_0030")
        self.register_plugin("xep_0199")
        if options.avatar:
            self.register_plugin("xep_0084")
        if options.archive:
            self.register_plugin("xep_0313")
        if options.capabilities:
            self.register_plugin("xep_0115")
        if options.receipts:
            self.register_plugin("xep_0184")
            self["xep_0184"].auto_request = True
        self.is_cutting = False
        if options.resume:
            self.register_plugin("xep_0198")
            self.enabled = asyncio.get_event_loop().create_future()
            self.resumed = asyncio.get_event_loop().create_future()
            self.add_event_handler("sm_enabled", lambda _: self.enabled.set_result(True))
            self.add_event_handler("session_resumed", lambda _: self.resumed.set_result(True))
        # PLAIN without TLS is what a plain session on loopback is for.
        self["feature_mechanisms"].unencrypted_plain = True
        if options.ca:
            self.ca_certs = options.ca
        else:
            self.ssl_context.check_hostname = False
            self.ssl_context.verify_mode = ssl.CERT_NONE
        if options.direct:
            self.ssl_context.set_alpn_protocols(["xmpp-client"])
        if options.tls_max:
            self.ssl_context.maximum_version = ssl.TLSVersion["TLSv" + options.tls_max.replace(".", "_")]
        self.add_event_handler("connected", lambda _: self.tell("connected"))
        self.add_event_handler("tls_success", lambda _: self.tell("tls"))
        if not options.all_mechanisms:
            self.add_event_handler("failed_auth", lambda stanza: self.fail("authentication", stanza["condition"]))
        self.add_event_handler("failed_all_auth", lambda _: self.fail("no mechanism was accepted"))
        self.add_event_handler("connection_failed", lambda reason: self.fail("connection", reason))
        self.add_event_handler("stream_error", lambda stanza: self.fail("stream error", stanza["condition"]))
        self.add_event_handler("disconnected", self.on_disconnected)
        self.add_event_handler("session_start", lambda _: asyncio.ensure_future(self.guarded()))
        self.add_event_handler("message", self.on_message)

    def tell(self, fact):
        self.facts.add(fact)
        tell(fact)

    def fail(self, *reason):
        if not self.done.done():
            tell("failed", reason=": ".join(str(part) for part in reason))
            self.done.set_result(False)

    def on_disconnected(self, reason):
        tell("disconnected", reason=str(reason or ""))
        if self.is_cutting:
            self.is_cutting = False
            return self.begin()
        self.fail("the server closed the connection")

    def on_message(self, message):
        if message["type"] in ("chat", "normal") and message["body"]:
            facts = {"from": str(message["from"]), "id": message["id"], "body": message["body"]}
            tell("received", **facts)
            if self.options.reply:
                self.say(str(message["from"]), self.options.reply)
            self.received.put_nowait(facts)

    def say(self, to, body):
        message = self.make_message(mto=to, mbody=body, mtype="chat")
        message["id"] = self.new_id()
        message.send()
        tell("sent", to=to, id=message["id"], body=body)

    def begin(self):
        options = self.options
        self.connect(
            (options.host, options.port),
            use_ssl=options.direct,
            disable_starttls=options.no_tls or options.direct,
            force_starttls=not options.no_tls and not options.direct,
        )
        if options.direct:
            # It would ask for the name of the host, and for that only where it is no address.
            self.default_domain = self.boundjid.domain
            self._pick_dns_answer = no_answer

    async def guarded(self):
        try:
            await self.session()
            if not self.done.done():
                self.done.set_result(True)
        except (IqError, IqTimeout, asyncio.TimeoutError) as problem:
            self.fail(type(problem).__name__, problem)

    async def session(self):
        options = self.options
        tell("bound", jid=str(self.boundjid))
        # slixmpp goes on in plain text where no STARTTLS is offered, whatever force_starttls says.
        if not options.no_tls and not options.direct and "tls" not in self.facts:
            return self.fail("the session is not encrypted")
        if options.add:
            await self.update_roster(options.add, name="A contact")
        await self.get_roster()
        tell("roster", items=sorted(jid for jid in self.client_roster if jid != self.boundjid.bare))
        if options.capabilities:
            await self["xep_0115"].update_caps(broadcast=False)
        self.send_presence(pstatus="here")
        tell("present")
        if options.ping:
            tell("pong", jid=self.boundjid.domain, seconds=await self["xep_0199"].ping(self.boundjid.domain, timeout=10))
        if options.resume:
            await asyncio.wait_for(self.enabled, 10)
            await asyncio.sleep(options.rest)
            self.is_cutting = True
            self.end_session_on_disconnect = False
            self.transport.abort()
            await asyncio.wait_for(self.resumed, 10)
            await self["xep_0199"].ping(self.boundjid.domain, timeout=10)
            tell("resumed")
        if options.avatar:
            await self.show_avatar(options.avatar)
        tell("ready")
        for to, body in options.send:
            await asyncio.sleep(options.rest)
            self.say(to, body)
        for _ in range(options.receive):
            await self.received.get()
        if options.archive:
            found = [item async for item in self["xep_0313"].iterate(rsm={"max": 1})]
            tell("archive", items=[str(item["mam_result"]["id"]) for item in found])
        # What was sent last must be on the wire before the stream ends: the server answers a ping in order.
        await self["xep_0199"].ping(self.boundjid.domain, timeout=10)
        # What is on its way when the connection is cut slixmpp forgets; after a rest nothing is.
        if options.resume and options.rest:
            await self.be_acknowledged()

    async def be_acknowledged(self):
        """Waits until the server has acknowledged as many stanzas as were sent to it, neither more nor fewer."""
        management = self["xep_0198"]
        management.request_ack()
        for _ in range(100):
            if management.last_ack == management.seq:
                return tell("acknowledged", handled=management.handled, sent=management.seq)
            await asyncio.sleep(0.1)
        raise asyncio.TimeoutError(f"{management.last_ack} acknowledged of {management.seq}")

    async def show_avatar(self, size):
        picture = bytes((index * 31 + index // 251) % 256 for index in range(size))
        await self["xep_0084"].publish_avatar(picture)
        name = hashlib.sha1(picture).hexdigest()
        answer = await self["xep_0084"].retrieve_avatar(self.boundjid.bare, name, timeout=20)
        got = answer["pubsub"]["items"]["item"]["avatar_data"]["value"]
        if got != picture:
            raise IqTimeout(answer)
        tell("avatar", id=name)


async def no_answer(*_):
    return None


def connect_through(loop, way, proxy):
    """Makes the loop connect through a proxy on 127.0.0.1, with SOCKS5 or HTTP CONNECT; slixmpp has no option for that."""
    direct = loop.create_connection

    async def create(factory, host, port, **rest):
        stream = socket.socket()
        stream.setblocking(False)
        await loop.sock_connect(stream, ("127.0.0.1", proxy))

        async def receive(count):
            data = b""
            while len(data) < count:
                more = await loop.sock_recv(stream, count - len(data))
                if not more:
                    raise OSError("the proxy closed the connection after %r" % data)
                data += more
            return data

        if way == "socks":
            await loop.sock_sendall(stream, b"\x05\x01\x00")
            if await receive(2) != b"\x05\x00":
                raise OSError("the proxy accepts no method")
            name = host.encode()
            await loop.sock_sendall(stream, b"\x05\x01\x00\x03" + bytes([len(name)]) + name + port.to_bytes(2, "big"))
            reply = await receive(4)
            if reply[1]:
                raise OSError("SOCKS reply %d" % reply[1])
            await receive(6 if reply[3] == 1 else 18)
        else:
            await loop.sock_sendall(stream, b"CONNECT %s:%d HTTP/1.1\r\n\r\n" % (host.encode(), port))
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += await receive(1)
            if not head.startswith(b"HTTP/1.1 200 "):
                raise OSError(head.decode())
        return await direct(factory, sock=stream, **rest)

    loop.create_connection = create


async def main(options):
    for way in ("socks", "connect"):
        if getattr(options, way):
            connect_through(asyncio.get_event_loop(), way, getattr(options, way))
    client = Client(options)
    client.begin()
    try:
        well = await asyncio.wait_for(asyncio.shield(client.done), options.timeout)
    except asyncio.TimeoutError:
        client.fail("not done within %g seconds" % options.timeout)
        well = False
    if "connected" in client.facts:
        try:
            await asyncio.wait_for(asyncio.shield(client.disconnect(wait=1)), 5)
        except asyncio.TimeoutError:
            tell("failed", reason="the stream did not end")
            well = False
    return 0 if well else 1


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jid", required=True)
    parser.add_argument("--password", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--socks", metavar="PORT", type=int, help="connect through this SOCKS5 proxy on 127.0.0.1")
    parser.add_argument("--connect", metavar="PORT", type=int, help="connect through this HTTP proxy on 127.0.0.1")
    parser.add_argument("--no-tls", action="store_true", help="stay in plain text (default: insist on STARTTLS)")
    parser.add_argument("--ca", help="file of certificates to verify the server with (default: accept any)")
    parser.add_argument("--direct", action="store_true", help="begin with TLS, rather than ask for it")
    parser.add_argument("--tls-max", choices=["1.2", "1.3"], help="the highest version of TLS")
    parser.add_argument("--avatar", metavar="BYTES", type=int, help="publish an avatar of this size and fetch it")
    parser.add_argument("--archive", action="store_true", help="page through the archive at the end, one message a page")
    parser.add_argument("--capabilities", action="store_true", help="name the software in the presence (XEP-0115)")
    parser.add_argument("--receipts", action="store_true", help="request and send receipts (XEP-0184)")
    parser.add_argument("--resume", action="store_true", help="cut the connection and resume the stream (XEP-0198)")
    parser.add_argument("--rest", metavar="SECONDS", type=float, default=0, help="wait before the cut, and each message")
    parser.add_argument("--mechanism", help="the only SASL mechanism to use")
    parser.add_argument("--all-mechanisms", action="store_true", help="go on to the next mechanism where one has failed")
    parser.add_argument("--add", metavar="JID", help="put a contact into the roster first")
    parser.add_argument("--ping", action="store_true", help="ping the server")
    parser.add_argument("--send", nargs=2, metavar=("JID", "BODY"), action="append", default=[])
    parser.add_argument("--reply", metavar="BODY", help="answer each message with this")
    parser.add_argument("--receive", metavar="N", type=int, default=0, help="wait for this many messages")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=30)
    parser.add_argument("--debug", action="store_true", help="slixmpp's own log on standard error")
    return parser.parse_args()


if __name__ == "__main__":
    flags = parse()
    logging.basicConfig(level=logging.DEBUG if flags.debug else logging.ERROR)
    # slixmpp leaves a task of its own behind at the end.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    sys.exit(asyncio.get_event_loop().run_until_complete(main(flags)))
