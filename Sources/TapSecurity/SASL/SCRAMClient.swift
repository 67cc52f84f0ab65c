public import TapCore

/// The client of a SCRAM mechanism (RFC 5802).
public struct SCRAMClient: SASLExchange {
    /// How a server's signature of one part of its offer turned out.
    public enum Signature: String, Hashable, Sendable {
        /// There is none that was looked at.
        case absent
        /// It is of what the client saw.
        case genuine
        /// It is of something else: the login was given up.
        case altered
    }

    /// How often a password may be hashed on the server's word: a lower number makes a stolen exchange easier to crack, a
    /// higher one keeps the client busy.
    public static let allowedIterations = 4096...1_000_000

    /// What was sent and is needed for the proof.
    private struct Opening {
        let header: String
        let bare: String
    }

    private enum State {
        case initial
        case waitingForServerFirst(Opening)
        case waitingForVerifier([UInt8])
        case finished
    }

    private let family: SCRAMMechanism
    private let names: SASLIdentity
    private let password: String
    private let nonce: String
    private let binding: BindingClaim
    private let offer: LoginOffer?
    private let mostIterations: Int
    private let cryptography: any Cryptography
    private var state = State.initial

    /// The server's signature of mechanisms and channel bindings (XEP-0474), once its challenge has come.
    public private(set) var mechanismSignature = Signature.absent
    /// The server's signature of the version of TLS (XEP-0515), once its challenge has come.
    public private(set) var versionSignature = Signature.absent

    /// - Parameters:
    ///   - mechanism: One the server offers.
    ///   - identity: The names to send.
    ///   - password: In clear; it is hashed for the proof and never sent.
    ///   - nonce: Printable ASCII without a comma, never used before.
    ///   - binding: What to say of channel binding.
    ///   - offer: What the server was seen to offer: a server that signs another offer is refused. Nil compares nothing.
    ///   - mostIterations: How often the password is hashed at most, where that is to be less than
    ///     ``allowedIterations`` permits: for who must not be kept busy.
    ///   - cryptography: Does the hashing.
    public init(
        _ mechanism: SCRAMMechanism,
        identity: SASLIdentity,
        password: String,
        nonce: String,
        binding: BindingClaim = .unsupported,
        offer: LoginOffer? = nil,
        mostIterations: Int = SCRAMClient.allowedIterations.upperBound,
        cryptography: any Cryptography
    ) {
        family = mechanism
        names = identity
        self.password = password
        self.nonce = nonce
        self.binding = binding
        self.offer = offer
        self.mostIterations = mostIterations
        self.cryptography = cryptography
    }

    /// The mechanism's registered name.
    public var mechanism: String { family.description }

    /// The names that are sent.
    public var identity: SASLIdentity? { names }

    /// Takes a message of the server.
    public mutating func step(_ incoming: [UInt8]?) -> SASLStep {
        let state = self.state
        self.state = .finished
        do throws(Refusal) {
            switch state {
            case .initial:
                guard incoming?.isEmpty ?? true else { throw .malformed("the server speaks before the client") }
                let opening = try self.opening()
                self.state = .waitingForServerFirst(opening)
                return .send(Array((opening.header + opening.bare).utf8))
            case .waitingForServerFirst(let opening):
                guard let incoming else { throw .denied("success before the server has proven itself") }
                let (verifier, answer) = try final(incoming, opening)
                self.state = .waitingForVerifier(verifier)
                return .send(answer)
            case .waitingForVerifier(let verifier):
                try check(incoming ?? [], verifier)
                return .done(nil)
            case .finished:
                throw .malformed("the exchange is over")
            }
        } catch {
            return .failed(error.condition, text: error.text)
        }
    }

    private func opening() throws(Refusal) -> Opening {
        let flag: String
        switch binding {
        case .unsupported where !family.isPlus: flag = "n"
        case .notOffered where !family.isPlus: flag = "y"
        case .bound(let binding) where family.isPlus: flag = "p=\(binding.type)"
        case .unsupported, .notOffered, .bound:
            throw .malformed("\(family) and the channel binding given do not go together")
        }
        guard let name = SASLprep.prepare(names.authentication), !name.isEmpty,
            SASLprep.prepare(password)?.isEmpty == false,
            !(names.authorization ?? "").utf8.contains(0), isNonce(nonce.utf8)
        else { throw .malformed("the name, the password or the nonce cannot be used with SCRAM") }
        let authorization = names.authorization.map { "a=\(encodeName($0))" } ?? ""
        return Opening(header: "\(flag),\(authorization),", bare: "n=\(encodeName(name)),r=\(nonce)")
    }

    private mutating func final(
        _ serverFirst: [UInt8],
        _ opening: Opening
    ) throws(Refusal) -> (verifier: [UInt8], answer: [UInt8]) {
        guard let attributes = SCRAMAttributes(serverFirst[...]) else {
            throw .malformed("the server's challenge is no list of attributes")
        }
        try throwServerError(attributes)
        guard !attributes.hasMandatoryExtension else { throw .malformed("extensions-not-supported") }
        guard let values = attributes.values("rsi") else {
            throw .malformed("the server's challenge does not begin with r=, s= and i=")
        }
        guard isNonce(values[0]), values[0].starts(with: nonce.utf8), values[0].count > nonce.utf8.count
        else {
            throw .malformed("the server's nonce does not continue the client's")
        }
        guard let salt = decodeBase64(values[1]), !salt.isEmpty else {
            throw .encoding("the salt is empty or not base64")
        }
        guard let iterations = decodeIterations(values[2]) else { throw .malformed("i= is not a number") }
        let allowed = Self.allowedIterations.clamped(to: 1...max(1, mostIterations))
        guard allowed.contains(iterations) else {
            throw .denied("\(iterations) iterations, \(allowed.lowerBound) to \(allowed.upperBound) are allowed")
        }
        try check(attributes)

        let password = SASLprep.prepare(self.password) ?? self.password
        let algorithm = family.algorithm
        let bindingData: [UInt8] = if case .bound(let binding) = binding { binding.data } else { [] }
        let withoutProof =
            Array("c=\(Base64.encode(Array(opening.header.utf8) + bindingData)),r=".utf8) + Array(values[0])
        let message = Array("\(opening.bare),".utf8) + serverFirst + Array(",".utf8) + withoutProof
        do {
            let keys = try SCRAMKeys(
                algorithm,
                password: password,
                salt: salt,
                iterations: iterations,
                cryptography: cryptography
            )
            let storedKey = try cryptography.digest(algorithm, of: keys.clientKey)
            let signature = try cryptography.hmac(algorithm, key: storedKey, of: message)
            let proof = Base64.encode(exclusiveOr(keys.clientKey, signature))
            let verifier = try cryptography.hmac(algorithm, key: keys.serverKey, of: message)
            return (verifier, withoutProof + Array(",p=\(proof)".utf8))
        } catch {
            throw .internal(error)
        }
    }

    /// Compares what the server signs with what it was seen to offer (XEP-0474 §6, XEP-0515 §5.2). The `d` of XEP-0474
    /// before version 0.4.0 is not looked at, as newer clients do.
    private mutating func check(_ serverFirst: SCRAMAttributes) throws(Refusal) {
        guard let offer else { return }
        if let signed = serverFirst.value("h", after: 3) {
            let hash: [UInt8]
            do { hash = try cryptography.digest(family.algorithm, of: offer.signedList) } catch {
                throw .internal(error)
            }
            mechanismSignature = signed.elementsEqual(Base64.encode(hash).utf8) ? .genuine : .altered
            guard mechanismSignature == .genuine else { throw .denied(Self.alteredOffer) }
        }
        if let signed = serverFirst.value("t", after: 3), let version = offer.signedVersion {
            versionSignature = signed.elementsEqual(version.utf8) ? .genuine : .altered
            guard versionSignature == .genuine else { throw .denied(Self.alteredVersion) }
        }
    }

    private static let alteredOffer =
        "the mechanisms or channel bindings that the server signs are not those it was seen to offer"
    private static let alteredVersion = "the version of TLS that the server signs is not that of this connection"

    private func check(_ serverFinal: [UInt8], _ verifier: [UInt8]) throws(Refusal) {
        guard !serverFinal.isEmpty else { throw .denied("success before the server has proven itself") }
        guard let attributes = SCRAMAttributes(serverFinal[...]) else {
            throw .malformed("the server's last message is no list of attributes")
        }
        try throwServerError(attributes)
        guard let value = attributes.values("v")?.first, let signature = decodeBase64(value) else {
            throw .malformed("the server's last message has no signature")
        }
        guard cryptography.areEqual(signature, verifier) else {
            throw .denied("the server does not know the password: its signature is wrong")
        }
    }

    private func throwServerError(_ attributes: SCRAMAttributes) throws(Refusal) {
        guard let value = attributes.values("e")?.first else { return }
        // It goes to logs: a name of RFC 5802 §7 or one like it, nothing that a server makes up for its readers.
        let isCode = 1...64 ~= value.count && value.allSatisfy { 0x61...0x7A ~= $0 || $0 == 0x2D }
        throw .denied("the server says \(isCode ? String(decoding: value, as: UTF8.self) : "other-error")")
    }
}
