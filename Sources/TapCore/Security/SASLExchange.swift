/// One authentication with a SASL mechanism (RFC 4422), on the client or on the server side.
///
/// Sans-IO: messages are raw bytes, without the base64 of the stream, and random values are passed at creation. The
/// exchange ends with the first step other than ``SASLStep/send(_:)``; later steps fail.
package protocol SASLExchange: Sendable {
    /// The registered name of the mechanism, such as `SCRAM-SHA-256`.
    var mechanism: String { get }

    /// The user of the login: on the client the claimed user, on the server the authenticated user, available after
    /// ``SASLStep/done(_:)``.
    var identity: SASLIdentity? { get }

    /// Handles a message of the peer and returns the next step.
    ///
    /// On a client, the first call passes nil and may return the initial response; the last call passes the data of the
    /// server's success, nil if it contained none. On a server, the first call passes the initial response: nil if
    /// there was none, empty if the stream contained `=`.
    mutating func step(_ incoming: [UInt8]?) -> SASLStep

    /// Whether the next step may hash a password with many iterations, which takes up to some hundred milliseconds, and
    /// should therefore not run on an event loop.
    var mayTakeLong: Bool { get }

    /// Whether the exchange failed because the peer violated the mechanism or failed to authenticate; false for other
    /// causes, such as a refusal by the peer.
    var isPeerAtFault: Bool { get }

    /// The secret that the server learned, which allows it to log in as the client elsewhere; nil before
    /// ``SASLStep/done(_:)``, and if nothing was learned.
    var learned: LearnedSecret? { get }
}

extension SASLExchange {
    /// False by default.
    package var mayTakeLong: Bool { false }

    /// False by default.
    package var isPeerAtFault: Bool { false }

    /// Nil by default.
    package var learned: LearnedSecret? { nil }
}

/// A secret that a server learns from a client's authentication, with which it can log in as the client.
package enum LearnedSecret: Hashable, Sendable {
    /// The password that the client sent.
    case password(String)
    /// `ClientKey` of SCRAM (RFC 5802 §3), which the client's proof reveals to the owner of `StoredKey` (§9); valid for
    /// one salt and iteration count.
    case clientKey(HashAlgorithm, [UInt8])
}

/// The next step of a SASL exchange.
package enum SASLStep: Hashable, Sendable {
    /// Send a challenge or response to the peer, and wait for its answer.
    case send([UInt8])
    /// The authentication succeeded.
    ///
    /// A server sends success with these bytes, if there are any. On a client the bytes are nil; if the last message
    /// was a challenge instead of the success, the client sends an empty response and waits for the success.
    case done([UInt8]?)
    /// The authentication failed: a server sends this condition to the client, a client aborts. The text is
    /// human-readable.
    case failed(SASLCondition, text: String)
}

/// The identities of a SASL login.
package struct SASLIdentity: Hashable, Sendable {
    /// The authentication identity, to which the password belongs; for XMPP the local part of the account.
    package var authentication: String
    /// The authorization identity; nil if it equals the authentication identity; for XMPP a bare JID.
    package var authorization: String?

    /// Creates a pair of identities.
    package init(authentication: String, authorization: String? = nil) {
        self.authentication = authentication
        self.authorization = authorization
    }
}

/// The condition of a SASL failure: the name of an element in `urn:ietf:params:xml:ns:xmpp-sasl` (RFC 6120 §6.5).
package struct SASLCondition: Hashable, Sendable, CustomStringConvertible {
    /// The name of the element.
    package let description: String

    /// Creates a condition from any element name.
    package init(_ name: String) { description = name }

    /// The client aborted the login.
    package static let aborted = SASLCondition("aborted")
    /// The mechanism requires TLS.
    package static let encryptionRequired = SASLCondition("encryption-required")
    /// The data was not valid base64.
    package static let incorrectEncoding = SASLCondition("incorrect-encoding")
    /// The authorization identity is invalid or not allowed.
    package static let invalidAuthzid = SASLCondition("invalid-authzid")
    /// The mechanism is not supported.
    package static let invalidMechanism = SASLCondition("invalid-mechanism")
    /// The message violates the mechanism.
    package static let malformedRequest = SASLCondition("malformed-request")
    /// The credentials are wrong; also used to hide details from attackers.
    package static let notAuthorized = SASLCondition("not-authorized")
    /// The server could not verify the credentials; the client may try again later.
    package static let temporaryAuthFailure = SASLCondition("temporary-auth-failure")
}

/// A channel binding (RFC 5056), which ties an authentication to its TLS connection.
package struct ChannelBinding: Hashable, Sendable {
    /// The registered type: `tls-exporter`, `tls-server-end-point` or `tls-unique`.
    package let type: String
    /// The binding data, which is equal at both ends of the TLS connection.
    package let data: [UInt8]

    /// Creates a channel binding.
    package init(type: String, data: [UInt8]) {
        self.type = type
        self.data = data
    }
}

/// The part of a server's login offer that SCRAM can sign: the attributes `h` (XEP-0474) and `t` (XEP-0515) of the
/// server's first message. A client compares them with the received offer, and must fail if they differ.
package struct LoginOffer: Sendable, Hashable {
    /// The mechanisms of the profile in use, SASL or SASL2, in any order.
    package var mechanisms: [String]
    /// The listed channel binding types (XEP-0440), in any order; nil if none are listed.
    package var bindingTypes: [String]?
    /// The TLS version number (0x0304 for TLS 1.3); nil without TLS.
    package var tlsVersion: UInt16?

    package init(mechanisms: [String], bindingTypes: [String]? = nil, tlsVersion: UInt16? = nil) {
        self.mechanisms = mechanisms
        self.bindingTypes = bindingTypes
        self.tlsVersion = tlsVersion
    }

    /// The text whose hash, base64-encoded, is the attribute `h` (XEP-0474 0.4.0 and later).
    package var signedList: [UInt8] {
        var text = Self.joined(mechanisms)
        if let bindingTypes { text += [0x1F] + Self.joined(bindingTypes) }
        return text
    }

    /// The attribute `t`, four hexadecimal digits such as `0304`; nil without TLS.
    package var signedVersion: String? {
        tlsVersion.map { version in
            let digits = String(version, radix: 16)
            return String(repeating: "0", count: 4 - digits.count) + digits
        }
    }

    /// Joins names, sorted by bytes (i;octet), with record separators.
    private static func joined(_ names: [String]) -> [UInt8] {
        let sorted = names.map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
        return Array(sorted.joined(separator: [0x1E]))
    }
}
