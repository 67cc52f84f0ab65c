"""One end of a login that is bound to TLS (RFC 5056), on pyOpenSSL: it checks the binding for real, on its own connection.

As a client it does STARTTLS, logs in by SCRAM-...-PLUS with PyPI's aiosasl, and binds a resource. As a server it offers
what it is told, takes SCRAM with and without binding by its own few lines, and EXTERNAL by the client's certificate.
Each prints one JSON object for a connection: what was agreed on, or the error.
"""

import argparse
import asyncio
import base64
import hashlib
import hmac
import json
import os
import re
import socket
import sys
from xml.sax.saxutils import escape, quoteattr

from OpenSSL import SSL, crypto

NS_SASL = "urn:ietf:params:xml:ns:xmpp-sasl"
NS_TLS = "urn:ietf:params:xml:ns:xmpp-tls"
NS_BIND = "urn:ietf:params:xml:ns:xmpp-bind"
HASHES = {"SCRAM-SHA-1": "sha1", "SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS = 4096


def tell(**facts):
    print(json.dumps(facts), flush=True)


class Stream:
    """Elements of a stream, one after the other, found by simple patterns: the other end is known."""

    def __init__(self, connection):
        self.connection = connection
        self.data = ""

    def send(self, text):
        self.connection.sendall(text.encode())

    def until(self, pattern):
        while True:
            found = re.search(pattern, self.data, re.DOTALL)
            if found:
                self.data = self.data[found.end() :]
                return found
            try:
                more = self.connection.recv(65536)
            except (SSL.ZeroReturnError, SSL.SysCallError):
                more = b""
            if not more:
                raise ConnectionError("ended before %s: %s" % (pattern, self.data[-300:]))
            self.data += more.decode()


def end_point(certificate):
    """RFC 5929 §4.1, for the certificates of these tests: SHA-256, as their signatures have."""
    return hashlib.sha256(crypto.dump_certificate(crypto.FILETYPE_ASN1, certificate)).digest()


def binding(connection, kind, is_client):
    if kind == "tls-exporter":
        return connection.export_keying_material(b"EXPORTER-Channel-Binding", 32, b"")
    if kind == "tls-unique":
        return connection.get_finished() if is_client else connection.get_peer_finished()
    if kind == "tls-server-end-point":
        return end_point(connection.get_peer_certificate() if is_client else connection.get_certificate())
    raise ValueError(kind)


def secure(plain, context, is_client, name=None):
    connection = SSL.Connection(context, plain)
    if is_client:
        connection.set_tlsext_host_name(name.encode())
        connection.set_connect_state()
    else:
        connection.set_accept_state()
    connection.do_handshake()
    return connection


def limit(context, version):
    if version:
        number = {"1.2": SSL.TLS1_2_VERSION, "1.3": SSL.TLS1_3_VERSION}[version]
        context.set_min_proto_version(number)
        context.set_max_proto_version(number)


# MARK: The client


def client(options):
    import aiosasl

    class Provider(aiosasl.channel_binding.ChannelBindingProvider):
        """What aiosasl has no provider for, or one that knows RSA alone."""

        cb_name = options.binding.encode()

        def extract_cb_data(self):
            return binding(tls, options.binding, True)

    class Interface(aiosasl.SASLInterface):
        """SASL of RFC 6120."""

        async def initiate(self, mechanism, payload=None):
            used.append(mechanism)
            text = base64.b64encode(payload).decode() or "="
            stream.send("<auth xmlns='%s' mechanism='%s'>%s</auth>" % (NS_SASL, mechanism, text))
            return self.answer()

        async def respond(self, payload):
            # What the server signs is what was offered (XEP-0474, XEP-0515), where it signs.
            problem = unlike_signed() if options.early else None
            if problem:
                await self.abort()
                raise aiosasl.SASLFailure(problem)
            stream.send("<response xmlns='%s'>%s</response>" % (NS_SASL, base64.b64encode(payload).decode()))
            return self.answer()

        async def abort(self):
            stream.send("<abort xmlns='%s'/>" % NS_SASL)
            stream.until(r"<failure[^>]*>.*?</failure>")
            return aiosasl.SASLState.FAILURE, None

        def answer(self):
            found = stream.until(r"<(challenge|success|failure)[^>]*?(?:/>|>(.*?)</\1>)")
            if found[1] == "failure":
                raise aiosasl.SASLFailure(found[2])
            data = base64.b64decode(found[2]) if found[2] else None
            if data:
                signed.update(part.split("=", 1) for part in data.decode().split(","))
            return aiosasl.SASLState(found[1]), data

    plain = socket.create_connection(("127.0.0.1", options.port), timeout=20)
    user, domain = options.jid.split("@")
    opening = (
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='%s' version='1.0'>"
        % domain
    )
    stream = Stream(plain)
    stream.send(opening)
    stream.until(r"</stream:features>")
    stream.send("<starttls xmlns='%s'/>" % NS_TLS)
    stream.until(r"<proceed[^>]*/>")
    context = SSL.Context(SSL.TLS_METHOD)
    limit(context, options.version)
    context.load_verify_locations(options.ca)
    context.set_verify(SSL.VERIFY_PEER, lambda connection, certificate, error, depth, ok: bool(ok))
    plain.settimeout(None)
    tls = secure(plain, context, True, domain)
    stream = Stream(tls)
    stream.send(opening)
    features = stream.until(r"<stream:features>(.*?)</stream:features>")[1]
    mechanisms = re.findall(r"<mechanism>([^<]*)</mechanism>", features)
    kinds = re.findall(r"<channel-binding type=['\"]([^'\"]*)", features)
    signed, used = {}, []

    def unlike_signed():
        if "h" in signed:
            text = "\x1e".join(sorted(mechanisms)) + ("\x1f" + "\x1e".join(sorted(kinds)) if kinds else "")
            name = HASHES[used[-1].replace("-PLUS", "")]
            if base64.b64encode(hashlib.new(name, text.encode()).digest()).decode() != signed["h"]:
                return "h is not of what was offered"
        if "t" in signed and signed["t"] != "%04x" % {"TLSv1.2": 0x303, "TLSv1.3": 0x304}[facts["version"]]:
            return "t is not the version"
        return None

    async def log_in():
        async def credentials():
            return user, options.password

        if options.flag:
            way = aiosasl.SCRAM(credentials, after_scram_plus=options.flag == "y")
            token = way.any_supported(mechanisms)
            await way.authenticate(aiosasl.SASLStateMachine(Interface()), token)
            return used[-1]
        provider = Provider()
        if options.binding == "tls-server-end-point" and options.provider == "aiosasl":
            provider = aiosasl.channel_binding.TLSServerEndPoint(tls)
        way = aiosasl.SCRAMPLUS(credentials, provider)
        token = way.any_supported(mechanisms)
        if token is None:
            raise ConnectionError("no -PLUS among %s" % mechanisms)
        await way.authenticate(aiosasl.SASLStateMachine(Interface()), token)
        return token[0]

    facts = dict(version=tls.get_protocol_version_name(), mechanisms=mechanisms, bindings=kinds)
    try:
        mechanism = asyncio.run(log_in())
    except aiosasl.SASLError as problem:
        return tell(error=str(problem), **facts) or 1
    problem = unlike_signed()
    if problem:
        return tell(error=problem, **facts) or 1
    stream.send(opening)
    stream.until(r"</stream:features>")
    stream.send("<iq type='set' id='b'><bind xmlns='%s'/></iq>" % NS_BIND)
    jid = stream.until(r"<jid>([^<]*)</jid>")[1]
    stream.send("</stream:stream>")
    tell(mechanism=mechanism, jid=jid, signed=sorted(set(signed) & {"h", "t"}), **facts)
    return 0


# MARK: The server


def attributes(text):
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def scram(stream, tls, mechanism, first, options):
    """RFC 5802 §5: the success's data, or the error."""
    name = HASHES[mechanism.replace("-PLUS", "")]
    flag, _, bare = first.split(",", 2)
    if flag.startswith("p=") != mechanism.endswith("-PLUS"):
        return None, "channel-bindings-dont-match"
    expected = (flag + ",%s," % first.split(",")[1]).encode()
    if flag.startswith("p="):
        if flag[2:] not in options.bindings:
            return None, "unsupported-channel-binding-type"
        expected += binding(tls, flag[2:], False)
    elif flag == "y" and any(other.endswith("-PLUS") for other in options.mechanisms):
        return None, "server-does-support-channel-binding"
    nonce = attributes(bare)["r"] + base64.b64encode(os.urandom(9)).decode()
    salt = os.urandom(12)
    challenge = "r=%s,s=%s,i=%d" % (nonce, base64.b64encode(salt).decode(), ITERATIONS)
    text = "\x1e".join(sorted(options.mechanisms))
    if options.bindings:
        text += "\x1f" + "\x1e".join(sorted(options.bindings))
    challenge += ",h=" + base64.b64encode(hashlib.new(name, text.encode()).digest()).decode()
    challenge += ",t=%04x" % {"TLSv1.2": 0x303, "TLSv1.3": 0x304}[tls.get_protocol_version_name()]
    stream.send("<challenge xmlns='%s'>%s</challenge>" % (NS_SASL, base64.b64encode(challenge.encode()).decode()))
    answer = stream.until(r"<(response|abort)[^>]*?(?:/>|>(.*?)</\1>)")
    if answer[1] == "abort":
        return None, "aborted"
    final = base64.b64decode(answer[2]).decode()
    without, proof = final.rsplit(",p=", 1)
    if base64.b64decode(attributes(without)["c"]) != expected:
        return None, "channel-bindings-dont-match"
    salted = hashlib.pbkdf2_hmac(name, options.password.encode(), salt, ITERATIONS)
    key = hmac.new(salted, b"Client Key", name).digest()
    message = ",".join([bare, challenge, without]).encode()
    signature = hmac.new(hashlib.new(name, key).digest(), message, name).digest()
    if bytes(a ^ b for a, b in zip(key, signature)) != base64.b64decode(proof):
        return None, "invalid-proof"
    server_key = hmac.new(salted, b"Server Key", name).digest()
    return b"v=" + base64.b64encode(hmac.new(server_key, message, name).digest()), None


def serve(options):
    context = SSL.Context(SSL.TLS_METHOD)
    limit(context, options.version)
    context.use_certificate_file(options.certificate)
    context.use_privatekey_file(options.key)
    if options.ca:
        context.load_verify_locations(options.ca)
        context.set_verify(SSL.VERIFY_PEER, lambda connection, certificate, error, depth, ok: bool(ok))
    options.mechanisms = options.mechanisms.split(",")
    options.bindings = options.bindings.split(",") if options.bindings else []
    listener = socket.create_server(("127.0.0.1", options.port))
    tell(listening=True)
    while True:
        plain, _ = listener.accept()
        try:
            tell(**converse(plain, context, options))
        except (OSError, ConnectionError, SSL.Error) as problem:
            tell(error=repr(problem))
        plain.close()


def converse(plain, context, options):
    answer = (
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' from='localhost' id='b'"
        " version='1.0'><stream:features>%s</stream:features>"
    )
    stream = Stream(plain)
    stream.until(r"<stream:stream[^>]*>")
    stream.send(answer % ("<starttls xmlns='%s'><required/></starttls>" % NS_TLS))
    stream.until(r"<starttls[^>]*/>")
    stream.send("<proceed xmlns='%s'/>" % NS_TLS)
    tls = secure(plain, context, False)
    stream = Stream(tls)
    stream.until(r"<stream:stream[^>]*>")
    names = "".join("<mechanism>%s</mechanism>" % escape(name) for name in options.mechanisms)
    kinds = "".join("<channel-binding type=%s/>" % quoteattr(kind) for kind in options.bindings)
    features = "<mechanisms xmlns='%s'>%s</mechanisms>" % (NS_SASL, names)
    if kinds:
        features += "<sasl-channel-binding xmlns='urn:xmpp:sasl-cb:0'>%s</sasl-channel-binding>" % kinds
    stream.send(answer % features)
    found = stream.until(r"<auth [^>]*mechanism=['\"]([^'\"]*)['\"][^>]*>(.*?)</auth>")
    mechanism, first = found[1], base64.b64decode(found[2] if found[2] != "=" else "").decode()
    facts = dict(version=tls.get_protocol_version_name(), mechanism=mechanism)
    if mechanism == "EXTERNAL":
        certificate = tls.get_peer_certificate()
        facts.update(authzid=first, subject=certificate.get_subject().CN if certificate else None)
        data, error = b"", None if certificate else "no certificate"
    else:
        facts["flag"] = first.split(",")[0]
        data, error = scram(stream, tls, mechanism, first, options)
    if error:
        condition = "aborted" if error == "aborted" else "not-authorized"
        stream.send("<failure xmlns='%s'><%s/></failure>" % (NS_SASL, condition))
        return dict(facts, error=error)
    stream.send("<success xmlns='%s'>%s</success>" % (NS_SASL, base64.b64encode(data).decode()))
    stream.until(r"<stream:stream[^>]*>")
    stream.send(answer % ("<bind xmlns='%s'/>" % NS_BIND))
    identifier = stream.until(r"<iq [^>]*id=['\"]([^'\"]*)['\"][^>]*>.*?</iq>")[1]
    stream.send(
        "<iq type='result' id='%s'><bind xmlns='%s'><jid>juliet@localhost/b</jid></bind></iq>" % (identifier, NS_BIND)
    )
    stream.until(r"</stream:stream>")
    stream.send("</stream:stream>")
    return facts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["client", "serve"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--version", choices=["1.2", "1.3"], help="the only version of TLS")
    parser.add_argument("--ca", help="whose certificates to trust; a server then asks for one")
    parser.add_argument("--password", default="")
    parser.add_argument("--jid")
    parser.add_argument("--binding", default="tls-exporter")
    parser.add_argument("--provider", choices=["aiosasl", "own"], default="own", help="who computes the binding")
    parser.add_argument("--flag", choices=["n", "y"], help="log in without binding, and say this of it")
    parser.add_argument("--early", action="store_true", help="compare what is signed before answering the challenge")
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--mechanisms", help="comma list")
    parser.add_argument("--bindings", default="", help="comma list")
    options = parser.parse_args()
    if options.role == "serve":
        return serve(options)
    try:
        return client(options)
    except (OSError, ConnectionError, SSL.Error) as problem:
        tell(error=repr(problem))
        return 1


sys.exit(main())
