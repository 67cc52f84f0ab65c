"""One end of a TLS connection, for what no XMPP program lets a test choose: names, protocols, versions, pieces.

As a client it connects, by STARTTLS or with TLS from the first byte on, opens a stream and prints one JSON object: what
was agreed on and what the server offers, or the error. As a server it prints one for each connection, and answers each
stream with features that offer PLAIN.
"""

import argparse
import json
import socket
import ssl
import sys
import time

OPEN = (
    "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='%s' version='1.0'>"
)
ANSWER = (
    "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' from='localhost' id='p'"
    " version='1.0'><stream:features>%s</stream:features>"
)
STARTTLS = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls>"
PLAIN = "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>"


def tell(**facts):
    print(json.dumps(facts), flush=True)


def read_until(read, text):
    got = b""
    while text not in got:
        more = read()
        if not more:
            raise ConnectionError("ended before %s: %s" % (text.decode(), got[-300:].decode(errors="replace")))
        got += more
    return got.decode()


def limit(context, options):
    # Debian's policy knows nothing below 1.2.
    if options.max in ("1.0", "1.1"):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.set_ciphers("DEFAULT@SECLEVEL=0")
    if options.max:
        context.maximum_version = ssl.TLSVersion["TLSv" + options.max.replace(".", "_").replace("1_0", "1")]
    if options.alpn:
        context.set_alpn_protocols(options.alpn.split(","))


def alert(number):
    """A fatal alert in clear, as it goes out before there are keys."""
    return bytes([0x15, 3, 3, 0, 2, 2, number])


def handshake(plain, tls, outgoing, incoming, options):
    """Shakes hands by hand, so that what goes out can go in pieces, or an alert in place of the client's second flight."""
    drip = options.drip
    while True:
        done = True
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            done = False
        finally:
            out = outgoing.read()
            for index in range(0, len(out), drip or len(out) or 1):
                plain.sendall(out[index : index + (drip or len(out))])
                if drip:
                    time.sleep(0.0005)
        if done:
            return
        data = plain.recv(65536)
        if not data:
            raise ConnectionError("ended in the handshake")
        if options.alert:
            plain.sendall(alert(options.alert))
            while plain.recv(65536):
                pass
            raise ConnectionError("ended after its own alert")
        incoming.write(data)


def client(options):
    plain = socket.create_connection(("127.0.0.1", options.port), timeout=20)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if options.starttls:
        plain.sendall((OPEN % options.to).encode())
        read_until(lambda: plain.recv(65536), b"</stream:features>")
        plain.sendall(b"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
        answer = read_until(lambda: plain.recv(1), b">")
        if "proceed" not in answer:
            raise ConnectionError("answered %s" % answer)
    context = ssl.create_default_context(cafile=options.ca)
    context.check_hostname = options.sni is not None
    limit(context, options)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=options.sni)
    handshake(plain, tls, outgoing, incoming, options)

    def read():
        while True:
            try:
                return tls.read(65536)
            except ssl.SSLWantReadError:
                data = plain.recv(65536)
                if not data:
                    return b""
                incoming.write(data)

    tls.write((OPEN % options.to).encode())
    plain.sendall(outgoing.read())
    features = read_until(read, b"</stream:features>")
    names = [name for _, name in tls.getpeercert().get("subjectAltName", ())]
    tell(version=tls.version(), alpn=tls.selected_alpn_protocol(), names=names, mechanisms="PLAIN" in features)


def serve(options):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
    limit(context, options)
    asked = []
    context.sni_callback = lambda connection, name, _: asked.append(name)
    listener = socket.create_server(("127.0.0.1", options.port))
    tell(listening=True)
    while True:
        connection, _ = listener.accept()
        connection.settimeout(20)
        asked.clear()
        try:
            if options.starttls:
                read_until(lambda: connection.recv(65536), b"version='1.0'>")
                connection.sendall((ANSWER % STARTTLS).encode())
                read_until(lambda: connection.recv(1), b"/>")
                connection.sendall(b"<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
            if options.alert:
                if not connection.recv(65536):
                    raise ConnectionError("ended before a hello")
                connection.sendall(alert(options.alert))
                raise ConnectionError("sent its alert")
            tls = context.wrap_socket(connection, server_side=True)
            tell(sni=(asked or [None])[0], alpn=tls.selected_alpn_protocol(), version=tls.version())
            read_until(lambda: tls.recv(65536), b"version='1.0'>")
            tls.sendall((ANSWER % PLAIN).encode())
            while tls.recv(65536):
                pass
        except (OSError, ConnectionError) as problem:
            tell(error=str(problem))
        connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["client", "serve"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--starttls", action="store_true")
    parser.add_argument("--max", choices=["1.0", "1.1", "1.2", "1.3"])
    parser.add_argument("--alpn", help="comma list")
    parser.add_argument("--ca")
    parser.add_argument("--sni", help="name to ask for and to verify (default: none)")
    parser.add_argument("--to", default="localhost")
    parser.add_argument("--drip", type=int, help="send the handshake in pieces of so many bytes")
    parser.add_argument("--alert", type=int, help="end TLS by this alert, once the other side has begun")
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    options = parser.parse_args()
    if options.role == "serve":
        return serve(options)
    try:
        client(options)
    except (OSError, ConnectionError) as problem:
        tell(error=str(problem))
        sys.exit(1)


main()
