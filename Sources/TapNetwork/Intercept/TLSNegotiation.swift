internal import NIOCore
internal import TapCore
internal import TapRecord
internal import TapSecurity

/// TLS that begins on both legs of a session: the server's first, so that what it agrees on can be mirrored.
final class TLSNegotiation {
    enum Step {
        /// The client has begun with TLS, and its hello is not complete.
        case hello
        /// All is known that the server's leg needs.
        case ready
        /// The handshake with the server.
        case server
        /// A certificate for the client is being found.
        case identity
        /// The handshake with the client.
        case client
    }

    private(set) var step: Step
    /// The client has begun with TLS, rather than asked for it.
    let isDirect: Bool
    /// What the client has said so far, where it has begun with TLS.
    private(set) var early = ByteBuffer()
    /// The client's hello, once that is complete.
    private(set) var hello: ClientHello?
    /// What is wrong with it; a clause for people.
    private(set) var fault: String?
    /// What was agreed on with the server; nil before that, and where its leg stays in clear.
    var agreed: TLSParameters?
    /// What the client is shown, once that is found.
    var shown: ShownCertificate?
    /// Whether there is a handshake on a leg.
    private let legs: Set<Leg>

    private var reader = ClientHelloReader()

    /// For a client that has asked for TLS, and a server that has consented.
    init(_ options: SessionOptions) {
        step = .ready
        isDirect = false
        legs = options.securedLegs
    }

    /// For a client that has begun with TLS.
    init(_ options: SessionOptions, directly buffer: ByteBuffer) {
        step = .hello
        isDirect = true
        legs = options.securedLegs
        _ = take(buffer)
    }

    /// Takes what the client says as part of its hello; false where that is not what it is.
    func take(_ buffer: ByteBuffer) -> Bool {
        guard isDirect, step == .hello || step == .ready else { return false }
        early.writeImmutableBuffer(buffer)
        guard step == .hello else { return true }
        switch reader.append(buffer.readableBytesUInt8Span) {
        case .needMore: return true
        case .hello(let hello): self.hello = hello
        case .malformed(let reason): fault = "malformed ClientHello: \(reason)"
        case .notTLS: fault = "it begins like TLS and is none"
        }
        step = .ready
        return true
    }

    /// Whether TLS begins on a leg.
    func secures(_ leg: Leg) -> Bool { legs.contains(leg) }

    func go(to step: Step) { self.step = step }

    /// Whose turn it is.
    var leg: Leg {
        switch step {
        case .hello, .client, .identity: .client
        case .ready, .server: .server
        }
    }

    /// Whether the leg may be read: the client only while its own TLS is under way.
    func reads(_ leg: Leg) -> Bool {
        switch step {
        case .hello: leg == .client
        case .ready, .identity: false
        case .server: leg == .server
        case .client: true
        }
    }
}

extension SessionOptions {
    /// The legs on which TLS can begin.
    fileprivate var securedLegs: Set<Leg> {
        Set([(Leg.client, clientTLS), (.server, serverTLS)].filter { $0.1 != .off }.map(\.0))
    }

    /// Which servers are of use to a client that has begun with TLS or without.
    func wish(for isTLS: Bool) -> ServiceDiscovery.Wish {
        switch (clientTLS, serverTLS) {
        case (_, .direct): .chosen(isTLS: true)
        case (_, .off): .chosen(isTLS: false)
        case (.off, .auto), (.off, .required): .any
        case (_, .auto), (_, .required): .mirroring(isTLS: isTLS)
        }
    }
}
