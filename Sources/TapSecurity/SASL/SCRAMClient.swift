package import TapCore
internal import TapRecord

/// The client side of a SCRAM mechanism (RFC 5802).
package struct SCRAMClient: SASLExchange {
    /// The result of checking a server's signature of its offer.
    package enum Signature: String, Hashable, Sendable {
        /// The server sent no signature, or it was not checked.
        case absent
        /// The signature matches the offer that the client received.
        case genuine
        /// The signature differs, and the login was aborted.
        case altered
    }

    /// The secret that the client proves to have.
    package enum Secret: Sendable, Hashable {
        /// A password in clear text, which is hashed and never sent.
        case password(String)
        /// `ClientKey` with the server's stored keys, valid for one salt and iteration count.
        case key([UInt8], of: SCRAMCredentials)
    }

    /// Iteration counts accepted from a server. A lower count would make a stolen exchange easier to crack, a higher
    /// one would take too much time.
    package static let allowedIterations = 4096...1_000_000

    /// The parts of the first message that the proof needs.
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
    private let secret: Secret
    private let nonce: String
    private let binding: BindingClaim
    private let offer: LoginOffer?
    private let cryptography: any Cryptography
    private var state = State.initial

    /// The result of checking the server's signature of its mechanisms and channel bindings (XEP-0474), which is part
    /// of its challenge.
    package private(set) var mechanismSignature = Signature.absent
    /// The result of checking the server's signature of the TLS version (XEP-0515), which is part of its challenge.
    package private(set) var versionSignature = Signature.absent
    /// Whether the server violated RFC 5802, or did not prove that it knows the password.
    package private(set) var isPeerAtFault = false

    /// - Parameters:
    ///   - mechanism: A mechanism that the server offers.
    ///   - identity: The names to send.
    ///   - secret: The password, or the keys derived from it.
    ///   - nonce: Printable ASCII without a comma, never used before.
    ///   - binding: The channel binding claim to send.
    ///   - offer: The offer that the client received; a server that signs another one is refused. nil skips the
    ///     comparison.
    ///   - cryptography: The cryptographic functions.
    package init(
        _ mechanism: SCRAMMechanism,
        identity: SASLIdentity,
        secret: Secret,
        nonce: String,
        binding: BindingClaim = .unsupported,
        offer: LoginOffer? = nil,
        cryptography: any Cryptography
    ) {
        family = mechanism
        names = identity
        self.secret = secret
        self.nonce = nonce
        self.binding = binding
        self.offer = offer
        self.cryptography = cryptography
    }

    /// The mechanism's registered name.
    package var mechanism: String { family.description }

    /// The names to send.
    package var identity: SASLIdentity? { names }

    /// Whether the next step hashes the password, with the iteration count of the server.
    package var mayTakeLong: Bool {
        if case .waitingForServerFirst = state, case .password = secret { return true }
        return false
    }

    /// Handles a message from the server.
    package mutating func step(_ incoming: [UInt8]?) -> SASLStep {
        let state = self.state
        self.state = .finished
        do throws(Refusal) {
            switch state {
            case .initial:
                guard incoming?.isEmpty ?? true else { throw .malformed("the server sent data before the client") }
                let opening = try self.opening()
                self.state = .waitingForServerFirst(opening)
                return .send(Array((opening.header + opening.bare).utf8))
            case .waitingForServerFirst(let opening):
                guard let incoming else { throw .denied("success without the server's signature") }
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
            // The server cannot be at fault before its first message.
            if case .initial = state { isPeerAtFault = false } else { isPeerAtFault = error.isPeerAtFault }
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
            throw .malformed("\(family) does not fit the given channel binding")
        }
        guard let name = SASLprep.prepare(names.authentication), !name.isEmpty,
            isUsable,
            !(names.authorization ?? "").utf8.contains(0), isNonce(nonce.utf8)
        else { throw .malformed("the user name, the password or the nonce cannot be used with SCRAM") }
        let authorization = names.authorization.map { "a=\(encodeName($0))" } ?? ""
        return Opening(header: "\(flag),\(authorization),", bare: "n=\(encodeName(name)),r=\(nonce)")
    }

    private mutating func final(
        _ serverFirst: [UInt8],
        _ opening: Opening
    ) throws(Refusal) -> (verifier: [UInt8], answer: [UInt8]) {
        guard let attributes = SCRAMAttributes(serverFirst[...]) else {
            throw .malformed("the server's challenge is not a list of attributes")
        }
        try throwServerError(attributes)
        guard !attributes.hasMandatoryExtension else { throw .malformed("extensions-not-supported") }
        guard let values = attributes.values("rsi") else {
            throw .malformed("the server's challenge does not begin with r=, s= and i=")
        }
        guard isNonce(values[0]), values[0].starts(with: nonce.utf8), values[0].count > nonce.utf8.count
        else {
            throw .malformed("the server's nonce does not begin with the client's nonce")
        }
        guard let salt = decodeBase64(values[1]), !salt.isEmpty else {
            throw .encoding("the salt is empty or not base64")
        }
        guard let iterations = decodeIterations(values[2]) else { throw .malformed("i= is not a number") }
        try checkHashing(salt, iterations)
        try check(attributes)

        let algorithm = family.algorithm
        let bindingData: [UInt8] = if case .bound(let binding) = binding { binding.data } else { [] }
        let withoutProof =
            Array("c=\(Base64.encode(Array(opening.header.utf8) + bindingData)),r=".utf8) + Array(values[0])
        let message = Array("\(opening.bare),".utf8) + serverFirst + Array(",".utf8) + withoutProof
        do {
            let keys = try keys(salt, iterations)
            let storedKey = try cryptography.digest(algorithm, of: keys.clientKey)
            let signature = try cryptography.hmac(algorithm, key: storedKey, of: message)
            let proof = Base64.encode(exclusiveOr(keys.clientKey, signature))
            let verifier = try cryptography.hmac(algorithm, key: keys.serverKey, of: message)
            return (verifier, withoutProof + Array(",p=\(proof)".utf8))
        } catch {
            throw .internal(error)
        }
    }

    /// Whether the secret can be used: a password must pass SASLprep.
    private var isUsable: Bool {
        guard case .password(let password) = secret else { return true }
        return SASLprep.prepare(password)?.isEmpty == false
    }

    /// Checks that salt and iteration count are within bounds, or equal those of the stored keys.
    private func checkHashing(_ salt: [UInt8], _ iterations: Int) throws(Refusal) {
        switch secret {
        case .password:
            let allowed = Self.allowedIterations
            guard allowed.contains(iterations) else {
                let message =
                    "iteration count \(iterations) is out of range (\(allowed.lowerBound) to \(allowed.upperBound))"
                // RFC 5802 §5.1 requires the lower bound; the upper bound is a limit of this client.
                throw iterations < allowed.lowerBound ? .denied(message) : .own(message)
            }
        case .key(_, let stored):
            let remedy = "copy the account's stored key from the server again, or use its password"
            guard iterations == stored.iterations else {
                throw .own(
                    "the server's iteration count is \(iterations), that of the stored keys is "
                        + "\(stored.iterations); \(remedy)"
                )
            }
            guard salt == stored.salt else {
                throw .own(
                    "the server's salt differs from that of the stored keys (both \(iterations) iterations): the password may "
                        + "have been changed; \(remedy)"
                )
            }
        }
    }

    private func keys(_ salt: [UInt8], _ iterations: Int) throws -> SCRAMKeys {
        switch secret {
        case .key(let clientKey, let stored): return SCRAMKeys(clientKey: clientKey, serverKey: stored.serverKey)
        case .password(let password):
            return try SCRAMKeys(
                family.algorithm,
                password: SASLprep.prepare(password) ?? password,
                salt: salt,
                iterations: iterations,
                cryptography: cryptography
            )
        }
    }

    /// Compares the server's signatures with the received offer (XEP-0474 §6, XEP-0515 §5.2). The attribute `d` of
    /// XEP-0474 before version 0.4.0 is ignored, as in newer clients.
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
        "the signed mechanisms or channel bindings differ from those that the server offered"
    private static let alteredVersion = "the signed TLS version differs from that of this connection"

    private func check(_ serverFinal: [UInt8], _ verifier: [UInt8]) throws(Refusal) {
        guard !serverFinal.isEmpty else { throw .denied("success without the server's signature") }
        guard let attributes = SCRAMAttributes(serverFinal[...]) else {
            throw .malformed("the server's last message is not a list of attributes")
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
        // The value goes into logs, so only names like those of RFC 5802 §7 are passed on.
        let isCode = 1...64 ~= value.count && value.allSatisfy { 0x61...0x7A ~= $0 || $0 == 0x2D }
        throw .own("the server answered \(isCode ? String(decoding: value, as: UTF8.self) : "other-error")")
    }
}
