#!/usr/bin/python3
"""Makes the packet captures that `run --packets` reads: sessions of clients with a server, as tcpdump records them there.

    Tests/Benchmarks/captures.py MEGABYTES FILE.pcap              in clear
    Tests/Benchmarks/captures.py MEGABYTES FILE.pcap KEYS.txt     by TLS 1.3 behind STARTTLS, and a key log

The stanzas have the shares of the mix in Sources/StanzaMix. Most are written one by one, some in bursts, as answers to a
login or a query of an archive are; every write becomes segments of at most 1448 bytes, and one record of TLS. Every second
segment is acknowledged. The sessions run beside each other, and their logins and ends are there. The same arguments make
the same file, but for TLS.
"""
import pathlib
import random
import ssl
import struct
import subprocess
import sys
import tempfile

SESSIONS = 40
SEGMENT = 1448
NAMES = "ash birch cedar dogwood elder fir gorse hazel".split()
WORDS = (
    "water the roses before noon and mind süße Bienen наш сад 庭 🌱 &amp; it was dry again so I &lt;3 moved them nearer to "
    "well …"
).split()

R = random.Random(20261121)


def token(count):
    return f"{R.getrandbits(4 * count):0{count}x}"


def text(count):
    return " ".join(R.choices(WORDS, k=count))


def bare():
    return f"{R.choice(NAMES)}@{R.choice(('garden', 'orchard'))}.example"


def full():
    return f"{bare()}/{R.choice(('shed', 'greenhouse', 'phone.41c9', 'Laptop', 'gate-02'))}"


def chat():
    number = token(32)
    return (
        f"<message from='{full()}' to='{full()}' type='chat' id='{number}' xml:lang='en'><body>{text(R.randint(2, 14))}</body>"
        "<active xmlns='http://jabber.org/protocol/chatstates'/><request xmlns='urn:xmpp:receipts'/>"
        f"<origin-id xmlns='urn:xmpp:sid:0' id='{number}'/></message>"
    )


def chat_state():
    return (
        f"<message from='{full()}' to='{full()}' type='chat' id='{token(32)}'>"
        f"<{R.choice(('composing', 'paused'))} xmlns='http://jabber.org/protocol/chatstates'/></message>"
    )


def receipt():
    return (
        f"<message from='{full()}' to='{full()}' id='{token(32)}'><received xmlns='urn:xmpp:receipts' id='{token(32)}'/>"
        "</message>"
    )


def presence():
    return (
        f"<presence from='{full()}' to='{bare()}'><show>away</show><status>{text(3)}</status><priority>5</priority>"
        "<c xmlns='http://jabber.org/protocol/caps' hash='sha-1' node='https://client.example' "
        f"ver='{token(27)}='/><x xmlns='vcard-temp:x:update'><photo>{token(40)}</photo></x></presence>"
    )


def room_message():
    room = "roses@rooms.garden.example"
    return (
        f"<message from='{room}/{R.choice(NAMES)}' to='{full()}' type='groupchat' id='{token(32)}'>"
        f"<body>{text(R.randint(8, 25))}</body><stanza-id xmlns='urn:xmpp:sid:0' by='{room}' id='{token(32)}'/>"
        f"<occupant-id xmlns='urn:xmpp:occupant-id:0' id='{token(32)}'/></message>"
    )


def room_presence():
    return (
        f"<presence from='roses@rooms.garden.example/{R.choice(NAMES)}' to='{full()}'>"
        f"<x xmlns='http://jabber.org/protocol/muc#user'><item affiliation='member' role='participant' jid='{full()}'/>"
        "<status code='110'/></x></presence>"
    )


def ping():
    return f"<iq from='{full()}' to='garden.example' type='get' id='{token(8)}'><ping xmlns='urn:xmpp:ping'/></iq>"


def result():
    return f"<iq from='garden.example' to='{full()}' type='result' id='{token(8)}'/>"


def roster():
    items = "".join(
        f"<item jid='{bare()}' name='{R.choice(NAMES)}' subscription='both'><group>Bees</group></item>" for _ in range(8)
    )
    return f"<iq to='{full()}' type='result' id='{token(8)}'><query xmlns='jabber:iq:roster' ver='7'>{items}</query></iq>"


def discovery():
    names = ("urn:xmpp:ping", "jabber:iq:version", "urn:xmpp:carbons:2", "urn:xmpp:mam:2", "urn:xmpp:jingle:1")
    return (
        f"<iq from='{full()}' to='{full()}' type='result' id='{token(8)}'>"
        "<query xmlns='http://jabber.org/protocol/disco#info'><identity category='client' type='pc' name='Trowel'/>"
        + "".join(f"<feature var='{name}'/>" for name in names) + "</query></iq>"
    )


def avatar():
    return (
        f"<message from='{bare()}' to='{full()}' type='headline' id='{token(32)}'>"
        "<event xmlns='http://jabber.org/protocol/pubsub#event'><items node='urn:xmpp:avatar:data'>"
        f"<item id='{token(40)}'><data xmlns='urn:xmpp:avatar:data'>{token(6000)}</data></item></items></event></message>"
    )


MIX = {
    chat: 44, presence: 16, room_message: 14, ping: 5, result: 5, chat_state: 4, receipt: 4, room_presence: 3, discovery: 2,
    roster: 2, avatar: 1,
}
HEADER = (
    "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
    "{} version='1.0'>"
)


class Capture:
    """A pcap file with times in microseconds: of Ethernet and IPv4, from clients to port 5222 of a server."""

    def __init__(self, path):
        self.file = open(path, "wb", 1 << 20)
        self.file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        self.size = 24
        self.time = 1_795_281_762_000_000

    def packet(self, segment):
        self.time += R.randrange(20, 400)
        self.file.write(struct.pack("<IIII", *divmod(self.time, 1_000_000), len(segment), len(segment)))
        self.file.write(segment)
        self.size += 16 + len(segment)


class Connection:
    """A connection of a client: what each end writes becomes segments of a capture."""

    def __init__(self, capture, number, context=None):
        self.capture = capture
        self.ends = [(bytes((192, 0, 2, 1 + number)), 40000 + number), (bytes((192, 0, 2, 200)), 5222)]
        self.next = [R.getrandbits(32), R.getrandbits(32)]
        self.unacknowledged = 0
        self.tls = None
        self.context = context
        self.segment(0, 0x02)
        self.segment(1, 0x12)
        self.segment(0, 0x10)

    def segment(self, sender, flags, data=b""):
        source, destination = self.ends[sender], self.ends[1 - sender]
        acknowledged = self.next[1 - sender] if flags & 0x10 else 0
        tcp = struct.pack(
            ">HHIIBBHHH12s", source[1], destination[1], self.next[sender], acknowledged, 0x80, flags, 501, 0, 0,
            b"\1\1\x08\x0a" + bytes(8),
        )
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 52 + len(data), 0, 0x4000, 64, 6, 0, source[0], destination[0])
        self.capture.packet(b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0" + ip + tcp + data)
        self.next[sender] = (self.next[sender] + len(data) + bool(flags & 3)) & 0xFFFFFFFF

    def send(self, sender, data):
        for start in range(0, len(data), SEGMENT):
            part = data[start:start + SEGMENT]
            self.segment(sender, 0x18 if start + SEGMENT >= len(data) else 0x10, part)
            self.unacknowledged += 1
            if self.unacknowledged == 2:
                self.unacknowledged = 0
                self.segment(1 - sender, 0x10)

    def write(self, sender, words):
        data = words.encode()
        if self.tls:
            data = self.tls[sender].write(data)
        self.send(sender, data)

    def login(self, number):
        server = "from='garden.example' id='s1'"
        self.write(0, HEADER.format("to='garden.example'"))
        if self.context:
            self.write(
                1,
                HEADER.format(server) + "<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/>"
                "</starttls></stream:features>",
            )
            self.write(0, "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
            self.write(1, "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
            self.tls = End.handshake(self, *self.context)
            self.write(0, HEADER.format("to='garden.example'"))
        self.write(
            1,
            HEADER.format(server) + "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN"
            "</mechanism></mechanisms></stream:features>",
        )
        self.write(0, "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGFzaABzZWNyZXQ=</auth>")
        self.write(1, "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        self.write(0, HEADER.format("to='garden.example'"))
        self.write(
            1,
            HEADER.format(server) + "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>",
        )
        self.write(0, "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
        self.write(
            1,
            "<iq type='result' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
            f"<jid>{NAMES[number % 8]}{number}@garden.example/shed</jid></bind></iq>",
        )

    def end(self):
        for sender in (0, 1):
            self.write(sender, "</stream:stream>")
        for sender in (0, 1):
            self.segment(sender, 0x11)


class End:
    """One end of TLS, in memory."""

    def __init__(self, context, **options):
        self.input, self.output = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.input, self.output, **options)

    def write(self, data):
        self.tls.write(data)
        return self.output.read()

    @staticmethod
    def handshake(connection, client, server):
        ends = [End(client, server_hostname="garden.example"), End(server, server_side=True)]
        # The client's finished leaves it done before the server is; a round more brings the session tickets.
        for _ in range(3):
            for sender, end in enumerate(ends):
                try:
                    end.tls.do_handshake()
                except ssl.SSLWantReadError:
                    pass
                data = end.output.read()
                connection.send(sender, data)
                ends[1 - sender].input.write(data)
        return ends


def contexts(keys):
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = pathlib.Path(folder) / "key", pathlib.Path(folder) / "certificate"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key]
            + ["-out", certificate, "-subj", "/CN=garden.example", "-addext", "subjectAltName=DNS:garden.example"],
            check=True, stderr=subprocess.DEVNULL,
        )
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(certificate, key)
        client = ssl.create_default_context(cafile=certificate)
    client.keylog_filename = str(keys)
    for context in (client, server):
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    return client, server


def mix():
    """The stanzas that a capture is made of."""
    R.seed(20261121)
    return [kind() for kind in R.choices(list(MIX), MIX.values(), k=4000)]


def make(megabytes, path, keys=None):
    """Writes a capture, by TLS if a file for the secrets is named; gives the number of stanzas."""
    if keys:
        pathlib.Path(keys).unlink(missing_ok=True)
    stanzas = mix()
    capture = Capture(path)
    context = contexts(keys) if keys else None
    connections = []
    for number in range(SESSIONS):
        connections.append(Connection(capture, number, context))
        connections[-1].login(number)
    count = 2 * SESSIONS
    while capture.size < megabytes * 1_000_000:
        burst = R.randint(2, 20) if R.random() < 0.08 else 1
        words = "".join(R.choices(stanzas, k=burst))
        # Clients receive most of what passes.
        R.choice(connections).write(R.random() < 0.7, words)
        count += burst
    for connection in connections:
        connection.end()
    capture.file.close()
    return count


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    print(make(int(sys.argv[1]), *sys.argv[2:]), "stanzas")
