internal import TapCore
package import TapRecord

/// Decrypts a recorded TLS connection with the secrets of a key log: TLS 1.2 (RFC 5246) and TLS 1.3 (RFC 8446).
///
/// Pass the bytes of both directions in pieces of any length, from the first byte of TLS on and approximately in the
/// order in which they were sent; ``next()`` returns the results. A direction that cannot be decrypted fails once; its
/// further bytes are counted and dropped. Memory is bounded. Neither the decryptor nor its key log is thread-safe.
package final class TLSDecryptor {
    /// The parameters negotiated in the handshake.
    package struct Handshake: Sendable, Hashable {
        /// The version, `0x0304` for TLS 1.3.
        package var version: UInt16
        /// The standard name of the cipher suite, `TLS_AES_128_GCM_SHA256`.
        package var suite: String
        /// The name in SNI, if any.
        package var serverName: String?
        /// The protocol chosen with ALPN, if any; in TLS 1.3 this requires the server's handshake secret.
        package var applicationProtocol: String?
        /// Whether an earlier session was resumed.
        package var isResumed: Bool
        /// Whether the key log contains a secret of the connection.
        package var hasSecrets: Bool
    }

    /// A result of the decryption.
    package enum Output: Sendable, Hashable {
        /// The handshake: once, before all other outputs except early failures and alerts.
        case handshake(Handshake)
        /// The content of one record.
        case plaintext(Direction, [UInt8])
        /// An alert other than close_notify.
        case alert(Direction, TLSAlert)
        /// The sender closed its side (close_notify).
        case closeNotify(Direction)
        /// Bytes, including record headers, that are missing or could not be decrypted here; decryption continues after
        /// them.
        case hole(Direction, bytes: Int)
        /// The last output of a direction.
        case failed(Direction, TLSDecryptionFailure)
    }

    /// Maximum number of bytes of a direction that are buffered while its keys depend on handshake messages of the
    /// other direction.
    private static let waitLimit = 256 << 10
    /// Maximum number of bytes of rejected early data.
    private static let refusedLimit = 1 << 20
    /// Maximum length of a record without its header (RFC 5246 §6.2.3).
    private static let maximumRecordLength = 1 << 14 + 2048
    /// Maximum number of bytes to search for a record after a hole, and of bytes to decrypt in failed attempts.
    private static let searchLimit = 1 << 20
    private static let searchWork = 64 << 20

    private let keyLog: KeyLog
    private let missingSecretLimit: Int
    private let send = Flow(.send)
    private let recv = Flow(.recv)
    private var client: ClientHello?
    private var server: ServerHello?
    private var suite: CipherSuite?
    private var wasRetried = false
    /// Whether the server accepts early data; nil until the EncryptedExtensions are read.
    private var acceptsEarlyData: Bool?
    private var handshake: Handshake?
    private var isHandshakeReported = false
    private var outputs: [Output] = []
    private var firstOutput = 0

    /// Creates a decryptor of one connection.
    ///
    /// - Parameters:
    ///   - keyLog: The secrets of this and other connections; it may grow.
    ///   - missingSecretLimit: Maximum number of bytes to keep of a direction while its secret is missing. The secret is searched
    ///     again at ``retry()`` and when more bytes arrive (default: 0, the direction fails at once).
    package init(keyLog: KeyLog, missingSecretLimit: Int = 0) {
        self.keyLog = keyLog
        self.missingSecretLimit = missingSecretLimit
    }

    /// Handles bytes of a direction.
    package func receive(_ direction: Direction, _ bytes: Span<UInt8>) {
        let flow = flow(direction)
        guard flow.failure == nil else { return flow.undecrypted += bytes.count }
        bytes.withUnsafeBufferPointer { flow.buffer.append(contentsOf: $0) }
        run(flow)
    }

    /// Handles missing bytes of a direction. The handshake up to the ServerHello is indispensable; later records are
    /// found again after the hole.
    package func hole(_ direction: Direction, bytes: Int) {
        let flow = flow(direction)
        // Larger values are errors of the caller, and must not overflow.
        let bytes = min(bytes, 1 << 32)
        guard bytes > 0 else { return }
        guard flow.failure == nil else { return }
        guard !flow.isWaiting else { return fail(flow, .gap(at: flow.offset + flow.buffer.count)) }
        let missing = bytes + flow.buffer.count
        let start = flow.offset + flow.buffer.count
        flow.offset += missing
        flow.undecrypted += flow.buffer.count
        flow.buffer = []
        beginSearch(flow, missing: missing, at: start)
    }

    /// Continues directions that wait for secrets, after the key log has grown.
    package func retry() {
        run(send)
        run(recv)
    }

    /// Whether a direction waits for a secret that the key log does not contain yet.
    package var isWaitingForSecret: Bool { send.isWaitingForSecret || recv.isWaitingForSecret }

    /// Fails directions that wait for secrets, because no more will arrive.
    package func giveUpSecrets() {
        for flow in [send, recv] where flow.isWaitingForSecret {
            if let wait = flow.wait { fail(flow, wait) }
        }
    }

    /// Handles the end of a direction: incomplete or waiting data fails.
    package func finish(_ direction: Direction) {
        let flow = flow(direction)
        guard flow.failure == nil else { return }
        if let search = flow.search {
            fail(flow, .gap(at: search.start))
        } else if let wait = flow.wait {
            fail(flow, wait)
        } else if !flow.buffer.isEmpty {
            fail(flow, .truncated)
        }
    }

    /// Returns the next output; nil if there is none yet.
    package func next() -> Output? {
        guard firstOutput < outputs.count else {
            outputs.removeAll(keepingCapacity: true)
            firstOutput = 0
            return nil
        }
        defer { firstOutput += 1 }
        return outputs[firstOutput]
    }

    /// Returns the number of received bytes of a direction that were not decrypted, record headers included.
    package func undecryptedBytes(_ direction: Direction) -> Int { flow(direction).undecrypted }

    // MARK: Directions

    private enum Epoch {
        case plaintext
        /// TLS 1.2 after ChangeCipherSpec.
        case negotiated
        /// TLS 1.3.
        case early, handshake, application
    }

    private struct Search {
        /// The offset of the hole.
        let start: Int
        var missing: Int
        var skipped = 0
        var work = TLSDecryptor.searchWork
        /// Keys with which the next record may be protected.
        var keys: [Keys]
    }

    private struct Keys {
        let epoch: Epoch
        let protection: RecordProtection
        /// The TLS 1.3 secret from which the keys were derived.
        let secret: [UInt8]
    }

    private final class Flow {
        let direction: Direction
        /// Unprocessed bytes, and their offset in the direction.
        var buffer: [UInt8] = []
        var offset = 0
        var epoch = Epoch.plaintext
        /// The keys of the epoch; nil until its first record.
        var keys: Keys?
        /// An incomplete handshake message, and the number of bytes left of an ignored one.
        var message: [UInt8] = []
        var skip = 0
        var search: Search?
        var refusedBytes = 0
        var undecrypted = 0
        /// The failure to report if the awaited secret or message does not arrive.
        var wait: TLSDecryptionFailure?
        var failure: TLSDecryptionFailure?

        init(_ direction: Direction) { self.direction = direction }

        var isWaiting: Bool { wait != nil }
        var isWaitingForSecret: Bool { if case .noSecret? = wait { true } else { false } }
    }

    private enum Step {
        case consumed(Int)
        case needMore
        /// Wait for the other direction or a secret, with the failure if it does not arrive.
        case wait(TLSDecryptionFailure)
        case fail(TLSDecryptionFailure)
    }

    private var isTLS13: Bool { server?.version == 0x0304 }

    private func flow(_ direction: Direction) -> Flow { direction == .send ? send : recv }

    /// Processes a direction, then the other one if it waited for this one.
    private func run(_ first: Flow) {
        var flow = first
        while work(off: flow) {
            flow = self.flow(flow.direction.opposite)
            guard flow.isWaiting else { return }
        }
    }

    /// Processes the buffer of a direction; returns whether it made progress.
    private func work(off flow: Flow) -> Bool {
        guard flow.failure == nil else { return false }
        var buffer: [UInt8] = []
        swap(&buffer, &flow.buffer)
        let start = flow.offset
        var consumed = 0
        flow.wait = nil
        buffer.withUnsafeBytes { bytes in
            while flow.failure == nil {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[consumed...])
                switch flow.search == nil ? read(flow, rest) : search(flow, rest) {
                case .consumed(let count):
                    consumed += count
                    flow.offset = start + consumed
                    continue
                case .needMore: break
                case .wait(let failure): flow.wait = failure
                case .fail(let failure): fail(flow, failure)
                }
                break
            }
        }
        buffer.removeFirst(consumed)
        if let wait = flow.wait {
            if buffer.count > (flow.isWaitingForSecret ? missingSecretLimit : Self.waitLimit) { fail(flow, wait) }
        }
        if flow.failure != nil {
            flow.undecrypted += buffer.count
        } else {
            swap(&buffer, &flow.buffer)
        }
        return consumed > 0 || flow.failure != nil
    }

    private func fail(_ flow: Flow, _ failure: TLSDecryptionFailure) {
        guard flow.failure == nil else { return }
        reportHandshake()
        flow.failure = failure
        flow.wait = nil
        flow.undecrypted += flow.buffer.count + (flow.search?.skipped ?? 0)
        flow.buffer = []
        flow.message = []
        flow.keys = nil
        flow.search = nil
        outputs.append(.failed(flow.direction, failure))
    }

    private func reportHandshake() {
        guard !isHandshakeReported, var handshake, let client else { return }
        isHandshakeReported = true
        handshake.serverName = client.serverName
        handshake.isResumed =
            handshake.isResumed || !isTLS13 && !client.sessionID.isEmpty && client.sessionID == server?.sessionID
        handshake.hasSecrets = keyLog.hasSecrets(clientRandom: client.random)
        outputs.append(.handshake(handshake))
    }

    // MARK: Records

    private func read(_ flow: Flow, _ bytes: UnsafeRawBufferPointer) -> Step {
        guard let type = bytes.first else { return .needMore }
        let isFirst = flow.offset == 0
        guard 20...24 ~= type, bytes.count < 2 || bytes[1] == 3 else {
            return .fail(isFirst ? .notTLS : .malformed(at: flow.offset))
        }
        guard bytes.count >= 5 else { return .needMore }
        let length = Int(bytes[3]) << 8 | Int(bytes[4])
        guard length <= Self.maximumRecordLength else { return .fail(isFirst ? .notTLS : .malformed(at: flow.offset)) }
        guard bytes.count >= 5 + length else { return .needMore }
        let record = UnsafeRawBufferPointer(rebasing: bytes[..<(5 + length)])
        if flow.epoch == .plaintext, type == 20 || type == 23 {
            if let step = endPlaintext(flow, record) { return step }
        } else if flow.epoch == .plaintext {
            return process(flow, type, Array(record[5...])) ?? .consumed(record.count)
        }
        // In TLS 1.3, ChangeCipherSpec only serves middleboxes and is ignored (RFC 8446 §5).
        if type == 20, flow.epoch != .negotiated { return .consumed(record.count) }
        return open(flow, type, record) ?? .consumed(record.count)
    }

    /// Handles ChangeCipherSpec or the first protected record; returns the next step unless the record has to be
    /// decrypted.
    private func endPlaintext(_ flow: Flow, _ record: UnsafeRawBufferPointer) -> Step? {
        let isChange = record[0] == 20
        if isChange, isTLS13 || wasRetried { return .consumed(record.count) }
        guard client != nil || flow.direction == .recv, server != nil || flow.direction == .send else {
            return .fail(.noHandshake)
        }
        guard server != nil else { return waitForPeer(flow) }
        if isTLS13 {
            flow.epoch = .handshake
            guard flow.direction == .send, client?.offersEarlyData == true, !wasRetried else { return nil }
            guard acceptsEarlyData != nil || recv.failure != nil || recv.epoch == .application else {
                flow.epoch = .plaintext
                return waitForPeer(flow)
            }
            if acceptsEarlyData == true { flow.epoch = .early }
            return nil
        }
        guard isChange else { return .fail(.malformed(at: flow.offset)) }
        flow.epoch = .negotiated
        return .consumed(record.count)
    }

    private func waitForPeer(_ flow: Flow) -> Step {
        self.flow(flow.direction.opposite).failure == nil ? .wait(.noHandshake) : .fail(.noHandshake)
    }

    private func open(_ flow: Flow, _ type: UInt8, _ record: UnsafeRawBufferPointer) -> Step? {
        if flow.keys == nil {
            switch makeKeys(flow.direction, flow.epoch) {
            case .success(let keys): flow.keys = keys
            case .failure(.noSecret) where flow.epoch == .early:
                flow.epoch = .handshake
                return open(flow, type, record)
            case .failure(.noHandshake): return waitForPeer(flow)
            case .failure(let failure):
                if case .noSecret = failure { return .wait(failure) }
                return .fail(failure)
            }
        }
        guard let keys = flow.keys else { return .fail(.wrongSecret) }
        if let content = keys.protection.open(record) { return processDecrypted(flow, type, content) }
        if flow.direction == .send, flow.epoch == .handshake, client?.offersEarlyData == true,
            !keys.protection.hasOpened, flow.refusedBytes < Self.refusedLimit
        {
            // Early data: the server rejected it, or its secret is missing.
            flow.refusedBytes += record.count
            flow.undecrypted += record.count
            if acceptsEarlyData == true { outputs.append(.hole(.send, bytes: record.count)) }
            return nil
        }
        guard keys.protection.hasOpened else { return .fail(.wrongSecret) }
        // The record was damaged in the recording: treat it as missing.
        flow.undecrypted += record.count
        beginSearch(flow, missing: record.count, at: flow.offset)
        return nil
    }

    private func processDecrypted(_ flow: Flow, _ type: UInt8, _ content: consuming [UInt8]) -> Step? {
        guard isTLS13 else { return process(flow, type, content) }
        while content.last == 0 { content.removeLast() }
        guard let type = content.popLast() else { return .fail(.malformed(at: flow.offset)) }
        return process(flow, type, content)
    }

    /// Handles the content of a decrypted or unprotected record.
    private func process(_ flow: Flow, _ type: UInt8, _ content: [UInt8]) -> Step? {
        switch type {
        case 20 where flow.epoch == .negotiated: flow.keys = nil
        case 21:
            guard content.count == 2 else { return .fail(.malformed(at: flow.offset)) }
            let alert = TLSAlert(code: content[1])
            outputs.append(alert.code == 0 ? .closeNotify(flow.direction) : .alert(flow.direction, alert))
        case 22: return processHandshake(flow, content)
        case 23:
            reportHandshake()
            if !content.isEmpty { outputs.append(.plaintext(flow.direction, content)) }
        default: break
        }
        return nil
    }

    // MARK: Handshake

    private func processHandshake(_ flow: Flow, _ content: [UInt8]) -> Step? {
        var rest = content[...]
        while !rest.isEmpty {
            if flow.skip > 0 {
                let count = min(flow.skip, rest.count)
                flow.skip -= count
                rest.removeFirst(count)
                continue
            }
            let wanted = flow.message.count < 4 ? 4 : 4 + Self.length(flow.message)
            let count = min(wanted - flow.message.count, rest.count)
            flow.message += rest.prefix(count)
            rest.removeFirst(count)
            guard flow.message.count >= 4 else { continue }
            let length = Self.length(flow.message)
            switch flow.message[0] {
            case 1, 2, 5, 8, 20, 24:
                guard length <= ClientHelloReader.limit else { return .fail(.malformed(at: flow.offset)) }
                guard flow.message.count == 4 + length else { continue }
                let message = flow.message
                flow.message.removeAll(keepingCapacity: true)
                if let step = processMessage(flow, message[0], message) { return step }
            default:
                flow.message.removeAll(keepingCapacity: true)
                flow.skip = length
            }
        }
        return nil
    }

    private static func length(_ message: [UInt8]) -> Int {
        Int(message[1]) << 16 | Int(message[2]) << 8 | Int(message[3])
    }

    private func processMessage(_ flow: Flow, _ type: UInt8, _ message: [UInt8]) -> Step? {
        switch (type, flow.direction, flow.epoch) {
        case (1, .send, .plaintext), (1, .send, .negotiated):
            guard case .hello(let hello) = ClientHello.read(Array(message.dropFirst(4))) else {
                return .fail(.malformed(at: flow.offset))
            }
            client = hello
            // A ClientHello within TLS 1.2 starts a renegotiation, which the server answers with a new ServerHello.
            if flow.epoch == .negotiated { server = nil }
        case (2, .recv, .plaintext), (2, .recv, .negotiated):
            guard let hello = ServerHello(Array(message.dropFirst(4))) else {
                return .fail(.malformed(at: flow.offset))
            }
            return processServerHello(hello)
        case (8, .recv, .handshake):
            guard let extensions = ServerExtensions(encrypted: Array(message.dropFirst(4))) else {
                return .fail(.malformed(at: flow.offset))
            }
            acceptsEarlyData = extensions.acceptsEarlyData
            handshake?.applicationProtocol = extensions.applicationProtocol
            reportHandshake()
        case (5, .send, .early):
            flow.epoch = .handshake
            flow.keys = nil
        case (20, _, .handshake):
            flow.epoch = .application
            flow.keys = nil
        case (24, _, .application):
            guard let keys = flow.keys else { break }
            switch updated(keys) {
            case .success(let keys): flow.keys = keys
            case .failure(let failure): return .fail(failure)
            }
        default: break
        }
        return nil
    }

    private func processServerHello(_ hello: ServerHello) -> Step? {
        guard !hello.isRetryRequest else {
            wasRetried = true
            return nil
        }
        let suite = CipherSuite(hello.cipherSuite)
        server = hello
        self.suite = suite
        handshake = Handshake(
            version: hello.version,
            suite: suite.name,
            applicationProtocol: hello.extensions.applicationProtocol,
            isResumed: hello.extensions.hasPreSharedKey,
            hasSecrets: false
        )
        var failure: TLSDecryptionFailure?
        if suite.protection == nil { failure = .unsupportedSuite(suite.name) }
        if hello.version != 0x0303, hello.version != 0x0304 { failure = .unsupportedVersion(hello.version) }
        if let failure {
            fail(recv, failure)
            fail(send, failure)
        } else if !isTLS13, missingSecretLimit == 0 {
            // If secrets may arrive later, the handshake is reported with the first decrypted record.
            reportHandshake()
        }
        return nil
    }

    // MARK: Keys

    /// Creates the first keys of an epoch; fails with `noHandshake` if messages of the other direction are missing.
    private func makeKeys(_ direction: Direction, _ epoch: Epoch) -> Result<Keys, TLSDecryptionFailure> {
        guard let client, let server, let suite, let protection = suite.protection else {
            return .failure(.noHandshake)
        }
        let isClient = direction == .send
        let label: KeyLog.Label =
            switch epoch {
            case .plaintext, .negotiated: .master
            case .early: .clientEarly
            case .handshake: isClient ? .clientHandshake : .serverHandshake
            case .application: isClient ? .clientApplication : .serverApplication
            }
        guard let secret = keyLog.secret(label, clientRandom: client.random) else { return .failure(.noSecret(label)) }
        do throws(OpenSSLError) {
            if isTLS13 {
                guard secret.count == suite.hashLength else { return .failure(.wrongSecret) }
                let protection = try RecordProtection(suite, protection, secret: secret)
                return .success(Keys(epoch: epoch, protection: protection, secret: secret))
            }
            let block = try KeyDerivation.keyBlock(
                master: secret,
                serverRandom: server.random,
                clientRandom: client.random,
                count: RecordProtection.keyBlockLength(suite, protection),
                suite
            )
            let keys = try RecordProtection(
                suite,
                protection,
                keyBlock: block,
                isClient: isClient,
                encryptsThenMACs: server.extensions.encryptsThenMACs
            )
            return .success(Keys(epoch: .negotiated, protection: keys, secret: []))
        } catch {
            return .failure(.library(error))
        }
    }

    /// Derives the keys after a KeyUpdate (RFC 8446 §7.2).
    private func updated(_ keys: Keys) -> Result<Keys, TLSDecryptionFailure> {
        guard let suite, let protection = suite.protection else { return .failure(.noHandshake) }
        do throws(OpenSSLError) {
            let secret = try KeyDerivation.expand(keys.secret, label: "traffic upd", count: suite.hashLength, suite)
            let protection = try RecordProtection(suite, protection, secret: secret)
            return .success(Keys(epoch: .application, protection: protection, secret: secret))
        } catch {
            return .failure(.library(error))
        }
    }

    // MARK: Holes

    private func beginSearch(_ flow: Flow, missing: Int, at start: Int) {
        flow.message = []
        flow.skip = 0
        if flow.search != nil {
            flow.search?.missing += missing
            return
        }
        var candidates: [Result<Keys, TLSDecryptionFailure>] = []
        if let keys = flow.keys, flow.epoch == .application || flow.epoch == .negotiated {
            candidates.append(.success(keys))
            // The missing bytes may contain a KeyUpdate.
            if flow.epoch == .application { candidates.append(updated(keys)) }
        } else {
            // The rest of the handshake is lost.
            candidates.append(makeKeys(flow.direction, isTLS13 ? .application : .negotiated))
        }
        var keys: [Keys] = []
        for candidate in candidates {
            switch candidate {
            case .success(let candidate): keys.append(candidate)
            case .failure(.noHandshake): return fail(flow, .gap(at: start))
            case .failure(let failure): return fail(flow, failure)
            }
        }
        flow.search = Search(start: start, missing: missing, keys: keys)
    }

    /// Searches for a record after a hole, at every offset and with every possible sequence number.
    private func search(_ flow: Flow, _ bytes: UnsafeRawBufferPointer) -> Step {
        guard var search = flow.search else { return .needMore }
        var index = 0
        while index + 5 <= bytes.count {
            if let length = possibleLength(bytes, index) {
                guard index + 5 + length <= bytes.count else { break }
                let record = UnsafeRawBufferPointer(rebasing: bytes[index..<(index + 5 + length)])
                let lost = search.missing + search.skipped + index
                if let (keys, content) = find(record, lost: lost, &search) {
                    flow.undecrypted += search.skipped + index
                    flow.search = nil
                    flow.keys = keys
                    flow.epoch = keys.epoch
                    outputs.append(.hole(flow.direction, bytes: lost))
                    return processDecrypted(flow, record[0], content) ?? .consumed(index + record.count)
                }
            }
            index += 1
            guard search.work > 0, search.skipped + index < Self.searchLimit else {
                return .fail(.gap(at: search.start))
            }
        }
        search.skipped += index
        flow.search = search
        return index > 0 ? .consumed(index) : .needMore
    }

    /// Returns the length of a record that may begin at this index.
    private func possibleLength(_ bytes: UnsafeRawBufferPointer, _ index: Int) -> Int? {
        guard bytes[index + 1] == 3, bytes[index + 2] == 3 else { return nil }
        guard isTLS13 ? bytes[index] == 23 : 21...23 ~= bytes[index] else { return nil }
        let length = Int(bytes[index + 3]) << 8 | Int(bytes[index + 4])
        return 9...Self.maximumRecordLength ~= length ? length : nil
    }

    /// Decrypts a record with an unknown sequence number.
    ///
    /// - Parameter lost: Number of bytes before the record, which may have contained other records of at least 14
    ///   bytes.
    private func find(
        _ record: UnsafeRawBufferPointer,
        lost: Int,
        _ search: inout Search
    ) -> (Keys, content: [UInt8])? {
        for keys in search.keys {
            var number = keys.protection.sequence
            let last = number + UInt64(lost / 14 + 1)
            while number <= last, search.work > 0 {
                // Besides decrypting the record, an attempt costs about as much as decrypting half a kilobyte.
                search.work -= record.count + 512
                if let content = keys.protection.open(record, sequence: number) { return (keys, content) }
                number += 1
            }
        }
        return nil
    }
}
