/// One authentication by one SASL mechanism (RFC 4422), seen from the client or from the server.
///
/// It is sans-IO: the messages go in and come out as raw bytes, before and after the base64 of the stream, and whatever is
/// random was handed to it when it was made. The exchange ends with the first step that is not ``SASLStep/send(_:)``;
/// a later step fails.
public protocol SASLExchange: Sendable {
    /// The mechanism's name as it stands in the list of mechanisms, `SCRAM-SHA-256` for example.
    var mechanism: String { get }

    /// The authenticating user: on the client the claimed one, on the server the verified one, and only after
    /// ``SASLStep/done(_:)``.
    var identity: SASLIdentity? { get }

    /// Takes the peer's message and says what happens next.
    ///
    /// On a client the first step takes `nil` and may give the initial response; the message of the server's success goes
    /// in as the last step, `nil` where it carried none. On a server the first step takes the initial response, `nil`
    /// where there was none, and empty where the stream had `=`.
    mutating func step(_ incoming: [UInt8]?) -> SASLStep

    /// Whether the next step may hash a password many times over, which takes from some milliseconds to some hundred: an event
    /// loop with other sessions has it done elsewhere.
    var mayTakeLong: Bool { get }

    /// Whether the exchange has failed because the peer broke the mechanism's rules or did not prove itself; false before a
    /// failure, and where that has another cause, such as a refusal in the peer's own words.
    var isPeerAtFault: Bool { get }

    /// What a server has learned that lets it log in as the client elsewhere; nil before ``SASLStep/done(_:)``, and where it
    /// learns nothing.
    var learned: LearnedSecret? { get }
}

extension SASLExchange {
    /// Nothing is hashed.
    public var mayTakeLong: Bool { false }

    /// Nobody is blamed.
    public var isPeerAtFault: Bool { false }

    /// Nothing is learned.
    public var learned: LearnedSecret? { nil }
}

/// What a server learns of a client that proves itself, with which it can log in as the client.
public enum LearnedSecret: Hashable, Sendable {
    /// The password, which the client has shown.
    case password(String)
    /// `ClientKey` of SCRAM (RFC 5802 §3), which a client's proof gives away to who has `StoredKey` (§9); good for the salt
    /// and the number of iterations by which it was made.
    case clientKey(HashAlgorithm, [UInt8])
}

/// What follows a message of a SASL exchange.
public enum SASLStep: Hashable, Sendable {
    /// Send this to the peer as challenge or response and wait for its answer.
    case send([UInt8])
    /// Authentication has succeeded.
    ///
    /// A server sends success with these bytes, if there are any. On a client there are none, and where the message that
    /// led here was a challenge and not the success itself, the client answers with an empty response and waits for it.
    case done([UInt8]?)
    /// Authentication has failed: a server sends this condition, a client aborts. The text is for people.
    case failed(SASLCondition, text: String)
}

/// The two names of SASL.
public struct SASLIdentity: Hashable, Sendable {
    /// The name whose password is checked; for XMPP the local part of the account.
    public var authentication: String
    /// The name to act as, or `nil` to act as the one that authenticates; for XMPP a bare JID.
    public var authorization: String?

    /// Puts the two names together.
    public init(authentication: String, authorization: String? = nil) {
        self.authentication = authentication
        self.authorization = authorization
    }
}

/// The reason of a SASL failure: the name of an element in `urn:ietf:params:xml:ns:xmpp-sasl` (RFC 6120 §6.5).
public struct SASLCondition: Hashable, Sendable, CustomStringConvertible {
    /// The element's name.
    public let description: String

    /// Takes a name as it stands on the wire, one of those below or another.
    public init(_ name: String) { description = name }

    /// The client has given up.
    public static let aborted = SASLCondition("aborted")
    /// The mechanism needs TLS.
    public static let encryptionRequired = SASLCondition("encryption-required")
    /// The base64 was wrong.
    public static let incorrectEncoding = SASLCondition("incorrect-encoding")
    /// The name to act as is wrong or not allowed.
    public static let invalidAuthzid = SASLCondition("invalid-authzid")
    /// There is no such mechanism here.
    public static let invalidMechanism = SASLCondition("invalid-mechanism")
    /// The message breaks the mechanism's own rules.
    public static let malformedRequest = SASLCondition("malformed-request")
    /// Wrong name or password; also said where saying more would help an attacker.
    public static let notAuthorized = SASLCondition("not-authorized")
    /// The server could not check; the client may try again later.
    public static let temporaryAuthFailure = SASLCondition("temporary-auth-failure")
}

/// Ties an authentication to the TLS connection it runs over (RFC 5056): the type's name and the data of this connection.
public struct ChannelBinding: Hashable, Sendable {
    /// The registered name: `tls-exporter`, `tls-server-end-point` or `tls-unique`.
    public let type: String
    /// The binding data, as both ends of one TLS connection compute them.
    public let data: [UInt8]

    /// Puts a type and its data together.
    public init(type: String, data: [UInt8]) {
        self.type = type
        self.data = data
    }
}

/// What a server offers for a login, as far as SCRAM can sign it: the attributes `h` (XEP-0474) and `t` (XEP-0515) of the
/// server's first message. A client compares them with what it has seen, and must fail where they differ.
public struct LoginOffer: Sendable, Hashable {
    /// The mechanisms of the profile in use, SASL's or SASL2's, in any order.
    public var mechanisms: [String]
    /// The types of channel binding that are named (XEP-0440), in any order; nil where there is no such list.
    public var bindingTypes: [String]?
    /// The version of TLS, as in the protocol (0x0304 is TLS 1.3); nil without TLS.
    public var tlsVersion: UInt16?

    /// An offer of these parts.
    public init(mechanisms: [String], bindingTypes: [String]? = nil, tlsVersion: UInt16? = nil) {
        self.mechanisms = mechanisms
        self.bindingTypes = bindingTypes
        self.tlsVersion = tlsVersion
    }

    /// The text whose hash, by the mechanism's function and in base64, is the attribute `h` (XEP-0474 0.4.0 and later).
    public var signedList: [UInt8] {
        var text = Self.joined(mechanisms)
        if let bindingTypes { text += [0x1F] + Self.joined(bindingTypes) }
        return text
    }

    /// The attribute `t`, four digits such as `0304`; nil without TLS.
    public var signedVersion: String? {
        tlsVersion.map { version in
            let digits = String(version, radix: 16)
            return String(repeating: "0", count: 4 - digits.count) + digits
        }
    }

    /// Sorted by their bytes (i;octet), with a record separator between them.
    private static func joined(_ names: [String]) -> [UInt8] {
        let sorted = names.map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
        return Array(sorted.joined(separator: [0x1E]))
    }
}
