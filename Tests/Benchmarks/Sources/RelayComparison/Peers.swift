import Foundation

/// The attributes of both peers' stream headers. The peers implement only a login (SASL PLAIN, resource binding).
private let header = "xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"

/// Searches received data for an expected end; the data is short and arrives in pieces.
private struct Expectation {
    private var seen: [UInt8] = []
    /// The data last received, up to the expected end.
    private(set) var last: [UInt8] = []

    /// Returns whether `end` has arrived; if so, discards the received data.
    mutating func meets(_ bytes: UnsafeBufferPointer<UInt8>, _ end: StaticString) -> Bool {
        seen.append(contentsOf: bytes)
        let wanted = UnsafeBufferPointer(start: end.utf8Start, count: end.utf8CodeUnitCount)
        guard seen.count >= wanted.count, seen[(seen.count - wanted.count)...].elementsEqual(wanted) else {
            return false
        }
        last = seen
        seen.removeAll()
        return true
    }
}

/// The server's side of a session: after binding, it returns every byte, or discards it.
final class ServerConnection: Connection {
    /// The number of bytes discarded by all connections.
    final class Sink {
        var received = 0
        var echoes = true
    }

    private let sink: Sink
    /// The user of the session.
    private var user = "ash"
    private var step = 0
    private var expectation = Expectation()

    init(_ descriptor: Int32, _ sink: Sink) {
        self.sink = sink
        super.init(descriptor)
    }

    override func received(_ bytes: UnsafeBufferPointer<UInt8>) {
        let ends: [StaticString] = ["'1.0'>", "</auth>", "'1.0'>", "</iq>"]
        guard step < ends.count else {
            sink.received += bytes.count
            if sink.echoes { send(bytes) }
            return
        }
        guard expectation.meets(bytes, ends[step]) else { return }
        let open = "<?xml version='1.0'?><stream:stream from='garden.example' id='s' \(header)<stream:features>"
        switch step {
        case 0:
            send(
                open + "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>"
                    + "</stream:features>"
            )
        case 1:
            user = Self.user(String(decoding: expectation.last, as: UTF8.self)) ?? user
            send("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        case 2: send(open + "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>")
        default:
            send(
                "<iq type='result' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                    + "<jid>\(user)@garden.example/shed</jid></bind></iq>"
            )
        }
        step += 1
    }

    /// Returns the user in an `<auth/>` with PLAIN.
    private static func user(_ auth: String) -> String? {
        guard let start = auth.firstIndex(of: ">"), let end = auth.lastIndex(of: "<"), start < end,
            let parts = Data(base64Encoded: String(auth[start..<end].dropFirst()))?.split(separator: 0)
        else { return nil }
        return parts.first.map { String(decoding: $0, as: UTF8.self) }
    }
}

/// The client's side of a session.
final class ClientConnection: Connection {
    /// Whether the resource is bound.
    private(set) var isReady = false
    var onReady: (ClientConnection) -> Void = { _ in }
    var onReceived: (ClientConnection, Int) -> Void = { _, _ in }
    var onReceivedBytes: (UnsafeBufferPointer<UInt8>) -> Void = { _ in }
    var onDrained: (ClientConnection) -> Void = { _ in }
    /// The state of a scenario: the position in the mix, the number of bytes to be returned, and the start time.
    var position = 0
    var expected = 0
    var since = 0

    private var step = 0
    private var expectation = Expectation()

    func begin() { send("<?xml version='1.0'?><stream:stream to='garden.example' \(header)") }

    override func received(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard !isReady else {
            onReceivedBytes(bytes)
            return onReceived(self, bytes.count)
        }
        let ends: [StaticString] = [
            "</stream:features>", "'urn:ietf:params:xml:ns:xmpp-sasl'/>", "</stream:features>", "</iq>",
        ]
        guard expectation.meets(bytes, ends[step]) else { return }
        step += 1
        switch step {
        case 1: send("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGFzaAByb290cw==</auth>")
        case 2: begin()
        case 3: send("<iq type='set' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
        default:
            isReady = true
            onReady(self)
        }
    }

    override func drained() { onDrained(self) }
}
