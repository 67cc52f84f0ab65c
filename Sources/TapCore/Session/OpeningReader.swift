public import XMPPCore

/// Reads what a client says first, up to the name of the domain that it wants: in the header of its stream (RFC 6120
/// §4.7.2), or in the ClientHello where it begins with TLS (XEP-0368).
///
/// Only looks: the bytes still have to be given to the ``Session``. No more than ``limit`` are looked at.
public struct OpeningReader: ~Copyable {
    /// How far the reading has come. All but ``needMore`` are final.
    public enum Result: Sendable, Hashable {
        /// Not complete yet.
        case needMore
        /// A stream header, and its `to`.
        case header(to: String?)
        /// TLS, and the server name asked for.
        case hello(serverName: String?)
        /// Neither: the stream error it deserves, and what is wrong as a clause for people.
        case neither(StreamErrorCondition, String)
    }

    /// Bytes that may come before the name is known; the same as of a ClientHello.
    public static let limit = ClientHelloReader.limit

    private var result = Result.needMore
    private var count = 0
    private var hello: ClientHelloReader?
    private var decoder: StreamDecoder

    /// A reader that has seen nothing.
    public init(limits: StreamLimits = .unauthenticated) { decoder = StreamDecoder(limits: limits) }

    /// Takes the bytes of one read and says what is known now.
    public mutating func append(_ bytes: Span<UInt8>) -> Result {
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
            case .item, .fragment, .torn: return .neither(.badFormat, "it begins without a stream header")
            }
        }
        return .needMore
    }
}
