internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Follows TLS in a captured connection: its beginning (RFC 6120 §5, XEP-0368), and its plaintext if the secrets are
/// known.
///
/// Bytes before TLS are passed on as they arrive. Bytes of TLS are held until it is known whether they can be
/// decrypted: then the plaintext is passed on, otherwise the ciphertext.
struct PacketTLS {
    enum Output {
        /// The next bytes: plaintext, or TLS that cannot be decrypted.
        case bytes(Direction, [UInt8])
        /// A number of missing bytes.
        case missed(Direction, UInt64)
        /// Later bytes are decrypted. The values are the negotiated parameters, and the server's `<proceed/>`, which is
        /// nil without STARTTLS.
        case decrypts(Attributes, consent: [UInt8]?)
        /// A note for the user about a direction.
        case remark(Direction, code: String, Prose)
    }

    private enum State {
        /// No TLS so far. The server's stream is searched for `<proceed/>`.
        case clear
        /// TLS has begun. It is not known yet whether it can be decrypted.
        case deciding(TLSDecryptor)
        case decrypting(TLSDecryptor)
        /// TLS is not decrypted.
        case opaque
    }

    /// Maximum bytes of TLS that are held until the decision: more than a ClientHello and a ServerHello have.
    private static let undecidedLimit = 256 << 10

    private let keys: KeyLog
    /// Whether the key log may get the secrets later.
    private let waits: Bool
    private var state = State.clear
    private var watch: ConsentWatch?
    /// Whether any bytes have arrived, for each direction.
    private var hasBegun = (send: false, recv: false)
    /// The server's `<proceed/>`, if any, and the output since TLS began.
    private var held: [Output] = []
    private var heldBytes = 0
    private var outputs = Outputs<Output>()

    /// - Parameter isWhole: Whether the first bytes are the beginning of the connection.
    init(_ keys: KeyLog, waits: Bool, isWhole: Bool) {
        self.keys = keys
        self.waits = waits
        watch = ConsentWatch(isWhole: isWhole)
    }

    mutating func next() -> Output? { outputs.next() }

    /// Processes bytes of the connection.
    mutating func receive(_ direction: Direction, _ bytes: [UInt8]) {
        if case .opaque = state { return outputs.append(.bytes(direction, bytes)) }
        let isFirst = direction == .send ? !hasBegun.send : !hasBegun.recv
        if direction == .send { hasBegun.send = true } else { hasBegun.recv = true }
        guard case .clear = state else { return receiveBehindStart(direction, bytes) }
        if bytes.first == 0x16, isFirst || direction == .send && watch == nil { return begin(direction, bytes) }
        let consent = direction == .recv ? watch?.append(bytes) : nil
        if watch?.isOver == true { watch = nil }
        guard let consent else { return outputs.append(.bytes(direction, bytes)) }
        if consent.lowerBound > 0 { outputs.append(.bytes(.recv, Array(bytes[..<consent.lowerBound]))) }
        held.append(.bytes(.recv, Array(bytes[consent])))
        startDecision()
        if consent.upperBound < bytes.count { receiveBehindStart(.recv, Array(bytes[consent.upperBound...])) }
        explainLack()
    }

    /// Decrypts bytes and passes the plaintext to `receive`, until there is output of another kind. ``next()`` returns
    /// that output and all later output.
    ///
    /// - Returns: False if nothing was done, because TLS is not decrypted.
    mutating func decrypt(
        _ direction: Direction,
        _ bytes: Span<UInt8>,
        _ receive: (Direction, Span<UInt8>) -> Void
    ) -> Bool {
        guard case .decrypting(let decryptor) = state else { return false }
        decryptor.receive(direction, bytes)
        while let output = decryptor.next() {
            guard case .plaintext(let direction, let content) = output else {
                process(output)
                break
            }
            receive(direction, content.span)
        }
        readDecrypted()
        return true
    }

    /// Returns whether bytes of a direction are passed on as they arrive, without any effect on the state. Exception: a
    /// TLS record from the client may still begin TLS, unless ``isOver``.
    func passesOn(_ direction: Direction) -> Bool {
        switch state {
        case .opaque: true
        case .deciding, .decrypting: false
        case .clear: watch == nil && (direction == .send ? hasBegun.send : hasBegun.recv)
        }
    }

    /// Whether TLS has begun and is not decrypted.
    var isOver: Bool { if case .opaque = state { true } else { false } }

    /// Records that bytes of a direction were not captured.
    mutating func hole(_ direction: Direction, _ count: UInt64) {
        switch state {
        case .clear, .opaque:
            watch = nil
            outputs.append(.missed(direction, count))
        case .deciding(let decryptor), .decrypting(let decryptor):
            if case .deciding = state { held.append(.missed(direction, count)) }
            decryptor.hole(direction, bytes: Int(clamping: count))
            readDecrypted()
        }
    }

    /// Whether TLS waits for secrets. No more input may be passed until ``retry()`` or ``giveUpSecrets()`` ends the
    /// wait.
    var isWaitingForSecret: Bool {
        switch state {
        case .clear, .opaque: false
        case .deciding(let decryptor), .decrypting(let decryptor): decryptor.isWaitingForSecret
        }
    }

    /// Tries again to decrypt, after the key log has grown.
    mutating func retry() { resume { $0.retry() } }

    /// Continues without the secrets.
    mutating func giveUpSecrets() { resume { $0.giveUpSecrets() } }

    private mutating func resume(_ change: (TLSDecryptor) -> Void) {
        switch state {
        case .clear, .opaque: return
        case .deciding(let decryptor), .decrypting(let decryptor):
            change(decryptor)
            readDecrypted()
        }
    }

    /// Records the end of a direction's bytes.
    mutating func finish(_ direction: Direction) {
        switch state {
        case .clear, .opaque: break
        case .deciding(let decryptor), .decrypting(let decryptor):
            decryptor.finish(direction)
            readDecrypted()
            if case .deciding = state { giveUp(nil) }
        }
    }

    // MARK: TLS

    /// Begins TLS before `<proceed/>` was seen: STARTTLS was not used, or its `<proceed/>` was not captured.
    private mutating func begin(_ direction: Direction, _ bytes: [UInt8]) {
        watch = nil
        startDecision()
        receiveBehindStart(direction, bytes)
        explainLack()
    }

    private var hasSecrets: Bool { keys.count > 0 || waits }

    /// Reports that TLS has begun but no key log was given.
    private mutating func explainLack() {
        guard !hasSecrets else { return }
        outputs.append(.remark(.send, code: "no-secret", "not decrypted: no key log was given"))
    }

    private mutating func startDecision() {
        guard hasSecrets else { return giveUp(nil) }
        state = .deciding(TLSDecryptor(keyLog: keys, missingSecretLimit: waits ? .max : 0))
    }

    private mutating func receiveBehindStart(_ direction: Direction, _ bytes: [UInt8]) {
        switch state {
        case .clear, .opaque: outputs.append(.bytes(direction, bytes))
        case .deciding(let decryptor):
            held.append(.bytes(direction, bytes))
            heldBytes += bytes.count
            decryptor.receive(direction, bytes.span)
            readDecrypted()
            if case .deciding = state, heldBytes > Self.undecidedLimit { giveUp(nil) }
        case .decrypting(let decryptor):
            decryptor.receive(direction, bytes.span)
            readDecrypted()
        }
    }

    private mutating func readDecrypted() {
        while true {
            switch state {
            case .clear, .opaque: return
            case .deciding(let decryptor):
                guard let output = decryptor.next() else { return }
                decide(output, decryptor)
            case .decrypting(let decryptor):
                guard let output = decryptor.next() else { return }
                process(output)
            }
        }
    }

    private mutating func decide(_ output: TLSDecryptor.Output, _ decryptor: TLSDecryptor) {
        switch output {
        case .handshake(let handshake) where handshake.hasSecrets:
            state = .decrypting(decryptor)
            // The other held bytes were already passed to the decryptor.
            outputs.append(.decrypts(handshake.details, consent: takeConsent()))
            held = []
        case .failed(let direction, let failure): giveUp((direction, failure))
        case .handshake, .plaintext, .alert, .closeNotify, .hole: break
        }
    }

    /// Removes and returns the server's `<proceed/>`, if the held bytes begin with it.
    private mutating func takeConsent() -> [UInt8]? {
        guard case .bytes(.recv, let bytes)? = held.first, bytes.first == 0x3C else { return nil }
        held.removeFirst()
        return bytes
    }

    /// Gives up decryption: reports the failure, and outputs the held bytes unchanged.
    private mutating func giveUp(_ why: (Direction, TLSDecryptionFailure)?) {
        state = .opaque
        if let consent = takeConsent() { outputs.append(.bytes(.recv, consent)) }
        if let (direction, failure) = why {
            outputs.append(.remark(direction, code: failure.name, "not decrypted: \(failure.explanation.clause)"))
        }
        outputs.append(contentsOf: held)
        held = []
    }

    private mutating func process(_ output: TLSDecryptor.Output) {
        switch output {
        case .plaintext(let direction, let bytes): outputs.append(.bytes(direction, bytes))
        case .hole(let direction, let count): outputs.append(.missed(direction, UInt64(max(0, count))))
        case .failed(let direction, let failure):
            outputs.append(.remark(direction, code: failure.name, "decryption ends: \(failure.explanation.clause)"))
        case .alert(let direction, let alert):
            outputs.append(.remark(direction, code: "tls-alert", "TLS alert: \(Prose("\(alert)").clause)"))
        case .handshake, .closeNotify: break
        }
    }
}

extension TLSDecryptor.Handshake {
    fileprivate var details: Attributes {
        var details: Attributes = [
            "version": .string(ClientHello.name(ofVersion: version)), "cipher": .string(suite),
        ]
        details["server_name"] = serverName.map { .string($0) }
        details["alpn"] = applicationProtocol.map { .string($0) }
        if isResumed { details["resumed"] = .boolean(true) }
        return details
    }
}

/// Searches a server's stream for `<proceed/>`, until TLS can no longer begin.
private final class ConsentWatch {
    /// A separate value, because spans can be borrowed from it.
    private struct Stream: ~Copyable {
        var decoder = StreamDecoder()

        func isConsent(_ event: StreamEvent) -> Bool {
            event.head.namespace.namespace == .tls && decoder.bytes.slice(event.head.name).equals("proceed")
        }
    }

    private var stream = Stream()
    private var received: UInt64 = 0
    /// Whether the beginning of the stream was not captured, and no element was found yet from which it can be read.
    private var seeks: Bool
    private(set) var isOver = false

    init(isWhole: Bool) { seeks = !isWhole }

    /// Processes bytes of the server; returns the range of `<proceed/>` in them, or nil if it is not complete. A part of it
    /// may have arrived earlier.
    func append(_ bytes: [UInt8]) -> Range<Int>? {
        guard !isOver else { return nil }
        var skipped = 0
        if seeks {
            guard let place = StreamPlace.first(in: bytes.span) else { return nil }
            seeks = false
            skipped = place.offset
            if !place.isHeader { read(InferredHeader.bytes(.recv)[...]) }
        }
        let base = received
        guard let consent = read(bytes[skipped...]) else { return nil }
        let start = consent.position < base ? 0 : consent.position - base
        let end = Int(clamping: consent.position + consent.length - base)
        return skipped + Int(clamping: start)..<skipped + end
    }

    /// Reads the next bytes; returns the position and the length of `<proceed/>` in the stream, or nil if it is not
    /// complete.
    @discardableResult
    private func read(_ bytes: ArraySlice<UInt8>) -> (position: UInt64, length: UInt64)? {
        received += UInt64(bytes.count)
        stream.decoder.append(bytes.span)
        while let event = stream.decoder.next() {
            switch event.kind {
            case .item(.element):
                if stream.isConsent(event) {
                    isOver = true
                    return (event.position, event.length)
                }
                // TLS cannot begin after authentication or stanzas.
                let namespace = event.head.namespace.namespace
                if namespace == .sasl || namespace == .sasl2 || event.head.kind != .nonza { isOver = true }
            case .item: break
            default: isOver = true
            }
        }
        return nil
    }
}
