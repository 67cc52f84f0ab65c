import NIOCore
import TapSecurity
import TapTestKit

/// A TLS client and a TLS server connected in memory; tests can split and modify the bytes between them.
struct EnginePair {
    let client: TLSEngine
    let server: TLSEngine
    /// The plaintext received at each end.
    var atClient = ByteBuffer()
    var atServer = ByteBuffer()
    /// Number of bytes transferred in each direction.
    private(set) var clientBytes = 0
    private(set) var serverBytes = 0

    init(_ client: TLSEngine, _ server: TLSEngine) {
        self.client = client
        self.server = server
    }

    /// Transfers bytes until there are none left, in pieces of at most `size`.
    mutating func pump(size: Int = .max) {
        client.advance(into: &atClient)
        server.advance(into: &atServer)
        var isBusy = true
        while isBusy {
            isBusy = false
            if var output = client.takeOutput() {
                isBusy = true
                clientBytes += output.readableBytes
                while let piece = output.readSlice(length: min(size, output.readableBytes)), piece.readableBytes > 0 {
                    server.receive(piece)
                    server.advance(into: &atServer)
                }
            }
            if var output = server.takeOutput() {
                isBusy = true
                serverBytes += output.readableBytes
                while let piece = output.readSlice(length: min(size, output.readableBytes)), piece.readableBytes > 0 {
                    client.receive(piece)
                    client.advance(into: &atClient)
                }
            }
        }
    }
}

/// An authority, a certificate for `example.org` and contexts for both legs.
struct EngineFixture {
    /// The default fixture, shared by all tests.
    private static let usual = Task { try await EngineFixture(names: ["DNS:example.org"]) { _ in } }

    static var common: EngineFixture {
        get async throws { try await usual.value }
    }

    let authority: TestAuthority
    let identity: TLSIdentity
    let serverContext: TLSContext
    let clientContext: TLSContext

    init(
        names: [String] = ["DNS:example.org"],
        start: String? = nil,
        end: String? = nil,
        change: (inout ServerLegTLS) -> Void = { _ in }
    ) async throws {
        authority = try await TestAuthority()
        let leaf = try await authority.leaf(names: names, start: start, end: end)
        identity = try TLSIdentity(certificateFile: leaf.certificate, keyFile: leaf.key)
        var options = ServerLegTLS()
        options.trust = .file(authority.root)
        change(&options)
        clientContext = try TLSContext(options)
        var ours = ClientLegTLS()
        ours.minimumVersion = options.minimumVersion
        serverContext = try TLSContext(ours)
    }

    /// Returns both ends before the handshake.
    func pair(
        domain: String = "example.org",
        client change: (inout ServerLegTarget) -> Void = { _ in },
        server offering: (inout ClientLegOffer) -> Void = { _ in }
    ) throws -> EnginePair {
        var target = try ServerLegTarget(reference: ServerReference(domain: domain))
        change(&target)
        var offer = ClientLegOffer(identity: identity)
        offering(&offer)
        return try EnginePair(
            TLSEngine(clientContext, to: target),
            TLSEngine(serverContext, for: offer)
        )
    }
}

extension TLSEngine.State {
    /// The fault; nil if TLS has not failed.
    var fault: TLSFault? {
        if case .failed(let fault) = self { fault } else { nil }
    }
}

extension TLSEngine {
    /// Encrypts the content of a buffer.
    @discardableResult
    func write(_ plaintext: ByteBuffer) -> Bool { write(plaintext.readableBytesUInt8Span) }
}
