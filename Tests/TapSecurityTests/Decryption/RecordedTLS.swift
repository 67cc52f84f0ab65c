import COpenSSL
import Synchronization
import TapRecord
import TapSecurity
import TapTestKit

/// An OpenSSL client and server with one version and suite, for several connections recorded byte for byte.
final class TLSLaboratory {
    struct Options {
        var version = TLSVersion.tls13
        /// OpenSSL's list of cipher suites.
        var suites: String?
        var clientGroups: String?
        var serverGroups: String?
        var encryptsThenMACs = true
        var usesTickets = true
        var maximumEarlyData: UInt32 = 0
    }

    fileprivate let client: OpaquePointer
    fileprivate let server: OpaquePointer
    private let lines = Lines()

    /// The content of the client's key log.
    var keyLog: String { lines.all.map { $0 + "\n" }.joined() }

    private static let certificate = Task { () -> (certificate: String, key: String, authority: TestAuthority) in
        let authority = try await TestAuthority()
        let leaf = try await authority.leaf(names: ["DNS:example.org"])
        return (leaf.certificate, leaf.key, authority)
    }

    init(_ options: Options = Options()) async throws {
        let files = try await Self.certificate.value
        guard let client = SSL_CTX_new(TLS_client_method()), let server = SSL_CTX_new(TLS_server_method()) else {
            throw KitError("no SSL_CTX")
        }
        self.client = client
        self.server = server
        for context in [client, server] {
            let version = Int(options.version.rawValue)
            SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, version, nil)
            SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, version, nil)
            var works: Int32 = 1
            if options.version == .tls13 {
                if let suites = options.suites { works = SSL_CTX_set_ciphersuites(context, suites) }
            } else {
                works = SSL_CTX_set_cipher_list(context, (options.suites ?? "ECDHE") + ":@SECLEVEL=0")
            }
            guard works == 1 else { throw KitError("OpenSSL has no suite \(options.suites ?? "")") }
            // SSL_OP_NO_ENCRYPT_THEN_MAC, SSL_OP_NO_TICKET and SSL_OP_ALLOW_CLIENT_RENEGOTIATION.
            if !options.encryptsThenMACs { SSL_CTX_set_options(context, 1 << 19) }
            if !options.usesTickets { SSL_CTX_set_options(context, 1 << 14) }
            SSL_CTX_set_options(context, 1 << 8)
        }
        SSL_CTX_use_certificate_file(server, files.certificate, SSL_FILETYPE_PEM)
        SSL_CTX_use_PrivateKey_file(server, files.key, SSL_FILETYPE_PEM)
        SSL_CTX_set_alpn_select_cb(
            server,
            { _, out, length, offered, _, _ in
                // Selects the first offered protocol.
                out?.pointee = offered.map { $0 + 1 }
                length?.pointee = offered?.pointee ?? 0
                return SSL_TLSEXT_ERR_OK
            },
            nil
        )
        if options.maximumEarlyData > 0 { SSL_CTX_set_max_early_data(server, options.maximumEarlyData) }
        Self.setGroups(client, options.clientGroups)
        Self.setGroups(server, options.serverGroups)
        SSL_CTX_set_ex_data(client, 0, Unmanaged.passUnretained(lines).toOpaque())
        SSL_CTX_set_keylog_callback(client) { ssl, line in
            guard let line, let data = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), 0) else { return }
            Unmanaged<Lines>.fromOpaque(data).takeUnretainedValue().append(String(cString: line))
        }
    }

    deinit {
        SSL_CTX_free(client)
        SSL_CTX_free(server)
    }

    private static func setGroups(_ context: OpaquePointer, _ groups: String?) {
        guard var groups = groups.map({ Array($0.utf8CString) }) else { return }
        SSL_CTX_ctrl(context, SSL_CTRL_SET_GROUPS_LIST, 0, &groups)
    }

    /// Returns the secrets of all connections so far.
    func makeKeyLog() -> KeyLog {
        let keyLog = KeyLog()
        keyLog.append(Array(self.keyLog.utf8).span)
        return keyLog
    }
}

/// A connection between both ends of a laboratory, with all transferred bytes.
final class RecordedTLS {
    /// The transferred bytes in order.
    private(set) var transcript: [(direction: Direction, bytes: [UInt8])] = []
    /// The plaintext written so far.
    private(set) var sent: [Direction: [UInt8]] = [.send: [], .recv: []]

    private let laboratory: TLSLaboratory
    private let client: OpaquePointer
    private let server: OpaquePointer

    /// Creates a connection and performs the handshake.
    ///
    /// - Parameters:
    ///   - session: An earlier connection to resume.
    ///   - earlyData: Early data to send with the first flight.
    init(
        _ laboratory: TLSLaboratory,
        resuming session: RecordedTLS? = nil,
        earlyData: [UInt8] = [],
        refusesEarlyData: Bool = false
    ) throws {
        guard let client = SSL_new(laboratory.client), let server = SSL_new(laboratory.server) else {
            throw KitError("no SSL")
        }
        self.laboratory = laboratory
        self.client = client
        self.server = server
        for ssl in [client, server] { SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem())) }
        SSL_set_connect_state(client)
        SSL_set_accept_state(server)
        let name = "example.org"
        xmpptap_set_server_name(client, name)
        let protocols = [UInt8(11)] + Array("xmpp-client".utf8)
        SSL_set_alpn_protos(client, protocols, UInt32(protocols.count))
        if let earlier = session.flatMap({ SSL_get1_session($0.client) }) {
            SSL_set_session(client, earlier)
            SSL_SESSION_free(earlier)
        }
        if refusesEarlyData { SSL_set_max_early_data(server, 0) }
        if !earlyData.isEmpty {
            var written = 0
            guard SSL_write_early_data(client, earlyData, earlyData.count, &written) == 1 else {
                throw KitError("no early data")
            }
            carry()
            if !refusesEarlyData {
                var bytes = [UInt8](repeating: 0, count: 1 << 15)
                var count = 0
                let result = SSL_read_early_data(server, &bytes, bytes.count, &count)
                guard result == SSL_READ_EARLY_DATA_SUCCESS, count == earlyData.count else {
                    throw KitError("early data was not accepted")
                }
                sent[.send]? += earlyData
                carry()
                SSL_do_handshake(client)
                carry()
                while SSL_read_early_data(server, &bytes, bytes.count, &count) == SSL_READ_EARLY_DATA_SUCCESS {}
            }
        }
        for _ in 0..<6 {
            SSL_do_handshake(client)
            carry()
            SSL_do_handshake(server)
            carry()
        }
        guard SSL_is_init_finished(client) == 1, SSL_is_init_finished(server) == 1 else {
            throw KitError("no handshake: \(String(cString: SSL_state_string_long(client)))")
        }
        drain()
    }

    deinit {
        SSL_free(client)
        SSL_free(server)
    }

    var isResumed: Bool { SSL_session_reused(client) == 1 }

    /// The standard name of the suite.
    var suite: String {
        SSL_get_current_cipher(client).flatMap { SSL_CIPHER_standard_name($0) }.map { String(cString: $0) } ?? ""
    }

    /// Writes plaintext and transfers it.
    func write(_ direction: Direction, _ plaintext: [UInt8]) {
        SSL_write(end(direction), plaintext, Int32(plaintext.count))
        sent[direction]? += plaintext
        carry()
        drain()
    }

    /// Writes stanzas of many lengths in both directions, one of them longer than a record.
    func converse() {
        for length in [1, 17, 400, 1460, 16_384, 40_000] {
            write(.send, Self.text(length, "c"))
            write(.recv, Self.text(length + 1, "s"))
        }
    }

    /// Returns a text of the given length without repeated parts.
    static func text(_ length: Int, _ mark: String) -> [UInt8] {
        Array((0...(length / 2)).map { "\(mark)\($0)," }.joined().utf8.prefix(length))
    }

    /// Updates the keys of one direction; if `both`, the peer is asked to update those of the other one.
    func updateKeys(_ direction: Direction, both: Bool = true) {
        SSL_key_update(end(direction), both ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED)
        SSL_do_handshake(end(direction))
        carry()
        drain()
    }

    func renegotiate() {
        SSL_renegotiate(client)
        for _ in 0..<4 {
            SSL_do_handshake(client)
            carry()
            drain()
        }
    }

    /// Sends close_notify from both ends.
    func close() {
        SSL_shutdown(client)
        carry()
        SSL_shutdown(server)
        carry()
    }

    private func end(_ direction: Direction) -> OpaquePointer { direction == .send ? client : server }

    private func carry() {
        for direction in [Direction.send, .recv] {
            var bytes = [UInt8](repeating: 0, count: 1 << 17)
            let count = BIO_read(SSL_get_wbio(end(direction)), &bytes, Int32(bytes.count))
            guard count > 0 else { continue }
            bytes.removeLast(bytes.count - Int(count))
            transcript.append((direction, bytes))
            BIO_write(SSL_get_rbio(end(direction.opposite)), bytes, count)
        }
    }

    /// Lets both ends read, and transfers their responses.
    private func drain() {
        var bytes = [UInt8](repeating: 0, count: 1 << 15)
        for ssl in [client, server] { while SSL_read(ssl, &bytes, Int32(bytes.count)) > 0 {} }
        carry()
    }
}

/// The outputs of a decryptor, grouped by kind.
struct Decrypted: Equatable {
    var handshake: TLSDecryptor.Handshake?
    var plaintext: [Direction: [UInt8]] = [.send: [], .recv: []]
    var closed: Set<Direction> = []
    var alerts: [TLSAlert] = []
    var holes: [Direction: Int] = [:]
    var failures: [Direction: TLSDecryptionFailure] = [:]
    var handshakes = 0
    /// Number of outputs of a direction after its failure; must be 0.
    var late = 0

    mutating func take(from decryptor: TLSDecryptor) {
        while let output = decryptor.next() {
            switch output {
            case .handshake(let facts):
                handshake = facts
                handshakes += 1
            case .plaintext(let direction, let bytes):
                plaintext[direction]? += bytes
                if failures[direction] != nil { late += 1 }
            case .alert(_, let alert): alerts.append(alert)
            case .closeNotify(let direction): closed.insert(direction)
            case .hole(let direction, let bytes): holes[direction, default: 0] += bytes
            case .failed(let direction, let failure):
                if failures[direction] != nil { late += 1 }
                failures[direction] = failure
            }
        }
    }
}

extension RecordedTLS {
    /// Decrypts the recorded bytes.
    ///
    /// - Parameters:
    ///   - size: Maximum number of bytes per call.
    ///   - order: The order of complete directions; nil for the recorded order.
    func decrypted(_ keyLog: KeyLog? = nil, size: Int = .max, order: [Direction]? = nil) -> Decrypted {
        let decryptor = TLSDecryptor(keyLog: keyLog ?? laboratory.makeKeyLog())
        var result = Decrypted()
        let pieces = order.map { order in order.flatMap { first in transcript.filter { $0.direction == first } } }
        for (direction, bytes) in pieces ?? transcript {
            decryptor.receive(direction, bytes, size: size)
            result.take(from: decryptor)
        }
        for direction in Direction.allCases { decryptor.finish(direction) }
        result.take(from: decryptor)
        return result
    }

    /// Returns all bytes of a direction.
    func bytes(_ direction: Direction) -> [UInt8] {
        transcript.filter { $0.direction == direction }.flatMap(\.bytes)
    }
}

extension TLSDecryptor {
    /// Receives bytes in pieces of at most `size`.
    func receive(_ direction: Direction, _ bytes: [UInt8], size: Int = .max) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(size))
            receive(direction, piece.span)
            rest = rest.dropFirst(size)
        }
    }
}
