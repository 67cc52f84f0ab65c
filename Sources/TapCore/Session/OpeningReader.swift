package import XMPPCore

/// Reads the client's first bytes until the requested domain is known: from the stream header (RFC 6120 §4.7.2), or
/// from the ClientHello if the client begins with TLS (XEP-0368).
///
/// Observes only: the bytes must still be passed to the ``Session``. Reads at most ``limit`` bytes.
package struct OpeningReader: ~Copyable {
    /// The result so far. All cases except ``needMore`` are final.
    package enum Result: Sendable, Hashable {
        /// More bytes are needed.
        case needMore
        /// A stream header, with its `to`.
        case header(to: String?)
        /// A ClientHello, with the requested server name.
        case hello(serverName: String?)
        /// Neither a stream header nor a ClientHello: the stream error to send, and the fault as a human-readable
        /// clause.
        case neither(StreamErrorCondition, String)
    }

    /// The largest number of bytes that are read before the domain is known; the same as for a ClientHello.
    package static let limit = ClientHelloReader.limit

    private var result = Result.needMore
    private var count = 0
    private var hello: ClientHelloReader?
    private var decoder: StreamDecoder

    /// Creates a reader in its initial state.
    package init(limits: StreamLimits = .unauthenticated) { decoder = StreamDecoder(limits: limits) }

    /// Reads the bytes of one read, and returns the result so far.
    package mutating func append(_ bytes: Span<UInt8>) -> Result {
        guard result == .needMore, !bytes.isEmpty else { return result }
        if count == 0, bytes[0] == 0x16 { hello = ClientHelloReader() }
        count += bytes.count
        result = hello == nil ? readStream(bytes) : readHello(bytes)
        if result == .needMore, count > Self.limit {
            result = .neither(.policyViolation, "\(count) bytes have come, the limit is \(Self.limit)")
        }
        return result
    }

    private mutating func readHello(_ bytes: Span<UInt8>) -> Result {
        switch hello?.append(bytes) {
        case .hello(let hello): .hello(serverName: hello.serverName)
        case .malformed(let reason): .neither(.badFormat, "malformed ClientHello: \(reason)")
        case .notTLS: .neither(.badFormat, "not TLS, although it begins like a TLS record")
        case .needMore, nil: .needMore
        }
    }

    private mutating func readStream(_ bytes: Span<UInt8>) -> Result {
        decoder.append(bytes)
        while let event = decoder.next() {
            switch event.kind {
            case .item(.declaration), .item(.whitespace): continue
            case .item(.header):
                guard let to = event.head.to else { return .header(to: nil) }
                var meaning: [UInt8] = []
                AttributeValue.decode(decoder.bytes.slice(to.range), into: &meaning)
                return .header(to: meaning.span.string())
            case .fault(let fault): return .neither(fault.condition, fault.explanation)
            case .item, .fragment, .incomplete: return .neither(.badFormat, "it begins without a stream header")
            }
        }
        return .needMore
    }
}
