package import TapCore
internal import TapRecord

/// The server side of a SCRAM mechanism (RFC 5802).
package struct SCRAMServer: SASLExchange {
    /// The settings of an exchange.
    package struct Settings: Sendable {
        /// Returns the stored keys of an account; nil if it does not exist.
        package var credentials: @Sendable (_ name: String) -> SCRAMCredentials?
        /// The server's part of the nonce: printable ASCII without a comma, never used before.
        package var nonce: String
        /// The channel bindings of the TLS connection; empty without TLS. If there are any, the server also offers
        /// `-PLUS`.
        package var channelBindings: [ChannelBinding]
        /// A secret from which constant salts of unknown accounts are derived, so that responses do not reveal which
        /// accounts exist.
        package var decoyKey: [UInt8]
        /// Returns the decoy for an unknown account.
        package var decoy: @Sendable (_ name: String) -> Decoy
        /// The offer that the client received, which is signed; nil to sign nothing.
        package var offer: LoginOffer?

        /// Creates settings.
        package init(
            nonce: String,
            channelBindings: [ChannelBinding] = [],
            decoyKey: [UInt8],
            decoy: @escaping @Sendable (_ name: String) -> Decoy = { Decoy(account: $0) },
            offer: LoginOffer? = nil,
            credentials: @escaping @Sendable (_ name: String) -> SCRAMCredentials?
        ) {
            self.credentials = credentials
            self.nonce = nonce
            self.channelBindings = channelBindings
            self.decoyKey = decoyKey
            self.decoy = decoy
            self.offer = offer
        }
    }

    /// The parts of the first message for an unknown account, which must look like the message for a known account.
    package struct Decoy: Sendable {
        /// The prepared name with which accounts are looked up. It is the same for all spellings, so that they all get
        /// one salt, as for a known account.
        package let account: String
        /// The length of the salt in bytes.
        package let saltLength: Int
        /// The iteration count.
        package let iterations: Int

        /// Creates a decoy; lengths and counts should be those of known accounts.
        package init(account: String, saltLength: Int = 16, iterations: Int = 4096) {
            self.account = account
            self.saltLength = saltLength
            self.iterations = iterations
        }
    }

    /// The state after the first two messages.
    private struct Agreement {
        let names: SASLIdentity
        let credentials: SCRAMCredentials
        let isKnown: Bool
        let nonce: [UInt8]
        /// The expected content of `c=`.
        let binding: [UInt8]
        /// The client's first message without its header, a comma, and the server's first message.
        let transcript: [UInt8]
    }

    private enum State {
        case waitingForFirst
        case waitingForFinal(Agreement)
        case finished
    }

    private let family: SCRAMMechanism
    private let settings: Settings
    private let cryptography: any Cryptography
    private var state = State.waitingForFirst

    /// The authenticated names; nil until then.
    package private(set) var identity: SASLIdentity?

    /// The client's `ClientKey`, once its proof is verified.
    package private(set) var learned: LearnedSecret?

    /// Creates the server side of an exchange.
    package init(_ mechanism: SCRAMMechanism, settings: Settings, cryptography: any Cryptography) {
        family = mechanism
        self.settings = settings
        self.cryptography = cryptography
    }

    /// The mechanism's registered name.
    package var mechanism: String { family.description }

    /// Whether the next step looks up the account's keys, which may be derived from a password.
    package var mayTakeLong: Bool {
        if case .waitingForFirst = state { return true }
        return false
    }

    /// Handles a message from the client.
    package mutating func step(_ incoming: [UInt8]?) -> SASLStep {
        let state = self.state
        self.state = .finished
        do throws(Refusal) {
            switch state {
            case .waitingForFirst:
                guard let incoming else {
                    self.state = .waitingForFirst
                    return .send([])
                }
                let (agreement, answer) = try first(incoming[...])
                self.state = .waitingForFinal(agreement)
                return .send(answer)
            case .waitingForFinal(let agreement):
                return .done(try final(incoming ?? [], agreement))
            case .finished:
                throw .malformed("the exchange is over")
            }
        } catch {
            return .failed(error.condition, text: error.text)
        }
    }

    // MARK: First message

    private func first(_ incoming: ArraySlice<UInt8>) throws(Refusal) -> (Agreement, answer: [UInt8]) {
        var bare = incoming
        guard let header = SCRAMHeader(takingFrom: &bare) else {
            throw .malformed("the message does not begin with a GS2 header")
        }
        let bindingData = try self.bindingData(for: header.flag)
        guard let attributes = SCRAMAttributes(bare) else {
            throw .malformed("the message is not a list of attributes")
        }
        guard !attributes.hasMandatoryExtension else { throw .malformed("extensions-not-supported") }
        guard let values = attributes.values("nr") else { throw .malformed("n= and r= are not the first attributes") }
        guard let written = SCRAMHeader.decodeName(values[0]), let name = SASLprep.prepare(written), !name.isEmpty
        else {
            throw .malformed("invalid-username-encoding")
        }
        guard isNonce(values[1]) else { throw .malformed("the nonce is empty or not printable ASCII") }

        let known = settings.credentials(name)
        let credentials = if let known { known } else { try decoy(for: name) }
        let nonce = Array(values[1]) + Array(settings.nonce.utf8)
        let answer =
            Array("r=".utf8) + nonce
            + Array(",s=\(Base64.encode(credentials.salt)),i=\(credentials.iterations)".utf8) + (try signature())
        let agreement = Agreement(
            names: SASLIdentity(authentication: name, authorization: header.authorization),
            credentials: credentials,
            isKnown: known != nil,
            nonce: nonce,
            binding: Array(header.bytes) + bindingData,
            transcript: Array(bare) + Array(",".utf8) + answer
        )
        return (agreement, answer)
    }

    /// Returns the attributes that sign the offer (XEP-0474, XEP-0515).
    private func signature() throws(Refusal) -> [UInt8] {
        guard let offer = settings.offer else { return [] }
        let algorithm = family.algorithm
        let hash = try compute { try $0.digest(algorithm, of: offer.signedList) }
        return Array(",h=\(Base64.encode(hash))\(offer.signedVersion.map { ",t=\($0)" } ?? "")".utf8)
    }

    /// Returns the channel binding data for a flag; its meaning depends on what the server offered (RFC 5802 §6).
    private func bindingData(for flag: SCRAMHeader.Flag) throws(Refusal) -> [UInt8] {
        switch flag {
        case .unsupported where !family.isPlus: return []
        case .notOffered where !family.isPlus:
            guard settings.channelBindings.isEmpty else { throw .malformed("server-does-support-channel-binding") }
            return []
        case .unsupported, .notOffered: throw .malformed("channel-bindings-dont-match")
        case .bound(let type):
            guard family.isPlus else { throw .malformed("channel-binding-not-supported") }
            guard let binding = settings.channelBindings.first(where: { $0.type == type }) else {
                throw .malformed("unsupported-channel-binding-type")
            }
            return binding.data
        }
    }

    private func decoy(for name: String) throws(Refusal) -> SCRAMCredentials {
        let (key, decoy) = (settings.decoyKey, settings.decoy(name))
        var salt = try compute { try $0.hmac(.sha512, key: key, of: Array(decoy.account.utf8)) }
        while salt.count < decoy.saltLength {
            let last = salt
            salt += try compute { try $0.hmac(.sha512, key: key, of: last) }
        }
        return SCRAMCredentials(
            salt: Array(salt.prefix(max(0, decoy.saltLength))),
            iterations: decoy.iterations,
            storedKey: [],
            serverKey: []
        )
    }

    // MARK: Final message

    private mutating func final(_ incoming: [UInt8], _ agreement: Agreement) throws(Refusal) -> [UInt8] {
        // The proof is the last attribute and covers everything before it.
        guard let comma = incoming.lastIndex(of: UInt8(ascii: ",")), incoming[comma...].starts(with: ",p=".utf8),
            let attributes = SCRAMAttributes(incoming[..<comma])
        else { throw .malformed("the message has no proof, or is not a list of attributes") }
        guard !attributes.hasMandatoryExtension else { throw .malformed("extensions-not-supported") }
        guard let values = attributes.values("cr") else { throw .malformed("c= and r= are not the first attributes") }
        guard let binding = decodeBase64(values[0]) else { throw .encoding("c= is not base64") }
        guard let proof = decodeBase64(incoming[(comma + 3)...]) else { throw .encoding("p= is not base64") }
        guard cryptography.areEqual(binding, agreement.binding) else {
            throw .malformed("channel-bindings-dont-match")
        }
        guard values[1].elementsEqual(agreement.nonce) else {
            throw .malformed("the nonce differs from the agreed one")
        }
        guard proof.count == family.algorithm.byteCount else { throw .denied("invalid-proof") }

        let message = agreement.transcript + Array(",".utf8) + Array(incoming[..<comma])
        let keys = agreement.credentials
        let algorithm = family.algorithm
        let signature = try compute { try $0.hmac(algorithm, key: keys.storedKey, of: message) }
        let clientKey = exclusiveOr(proof, signature)
        let storedKey = try compute { try $0.digest(algorithm, of: clientKey) }
        guard cryptography.areEqual(storedKey, keys.storedKey), agreement.isKnown else {
            throw .denied("wrong user name or password")
        }
        let verifier = try compute { try $0.hmac(algorithm, key: keys.serverKey, of: message) }
        identity = agreement.names
        learned = .clientKey(algorithm, clientKey)
        return Array("v=\(Base64.encode(verifier))".utf8)
    }

    private func compute(_ body: (any Cryptography) throws -> [UInt8]) throws(Refusal) -> [UInt8] {
        do { return try body(cryptography) } catch { throw .internal(error) }
    }
}
