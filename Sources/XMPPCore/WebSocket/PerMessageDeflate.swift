/// The parameters of permessage-deflate (RFC 7692 §7.1), in an offer or in an answer.
package struct PerMessageDeflate: Sendable, Hashable {
    /// The name of the extension.
    package static let name = "permessage-deflate"

    /// Whether the server compresses each message without those before it.
    package var serverNoContextTakeover = false
    /// Whether the client compresses each message without those before it.
    package var clientNoContextTakeover = false
    /// Base-2 logarithm of the server's window, from 8 to 15; nil for 15.
    package var serverMaxWindowBits: Int?
    /// Base-2 logarithm of the client's window, from 8 to 15; nil for 15.
    package var clientMaxWindowBits: Int?
    /// Whether an offer allows the server to limit the client's window.
    package var allowsClientMaxWindowBits = false

    /// Creates parameters that limit nothing.
    package init() {}

    /// Reads the parameters of an offer or of an answer.
    package init(_ extension: WebSocketExtension, isOffer: Bool) throws(WebSocketExtensionFault) {
        guard `extension`.name == Self.name else { throw .unsupported }
        var seen: Set<String> = []
        for parameter in `extension`.parameters {
            guard seen.insert(parameter.name).inserted else { throw .parameter }
            switch parameter.name {
            case "server_no_context_takeover":
                guard parameter.value == nil else { throw .parameter }
                serverNoContextTakeover = true
            case "client_no_context_takeover":
                guard parameter.value == nil else { throw .parameter }
                clientNoContextTakeover = true
            case "server_max_window_bits": serverMaxWindowBits = try Self.windowBits(parameter.value)
            case "client_max_window_bits":
                allowsClientMaxWindowBits = true
                if parameter.value != nil || !isOffer { clientMaxWindowBits = try Self.windowBits(parameter.value) }
            default: throw .parameter
            }
        }
    }

    /// Reads a decimal number from 8 to 15 without leading zeros.
    private static func windowBits(_ value: String?) throws(WebSocketExtensionFault) -> Int {
        for bits in 8...15 where value == String(bits) { return bits }
        throw .parameter
    }

    /// Returns the base-2 logarithm of the window of messages from `sender`, in an answer.
    package func windowBits(from sender: WebSocketSender) -> Int {
        (sender == .client ? clientMaxWindowBits : serverMaxWindowBits) ?? 15
    }

    /// Returns whether messages from `sender` may refer to earlier ones, in an answer.
    package func keepsContext(from sender: WebSocketSender) -> Bool {
        !(sender == .client ? clientNoContextTakeover : serverNoContextTakeover)
    }

    /// Returns whether an answer with these parameters fits to an offer (RFC 7692 §7.1.1, §7.1.2).
    package func fits(_ offer: PerMessageDeflate) -> Bool {
        if offer.serverNoContextTakeover, !serverNoContextTakeover { return false }
        if let most = offer.serverMaxWindowBits, windowBits(from: .server) > most { return false }
        return clientMaxWindowBits == nil || offer.allowsClientMaxWindowBits
    }

    /// Returns the parameters on which client and server agree, by the fields `Sec-WebSocket-Extensions` of a request
    /// and of its answer with status 101; nil if messages are not compressed.
    ///
    /// - Throws: The fault of the negotiation. If it is ``WebSocketExtensionFault/unsupported``, the peers may
    ///   understand each other.
    package static func agreed(
        offered: [String],
        answered: [String]
    ) throws(WebSocketExtensionFault) -> PerMessageDeflate? {
        guard let answers = WebSocketExtension.parse(answered) else { throw .malformed }
        guard !answers.isEmpty else { return nil }
        guard let offers = WebSocketExtension.parse(offered) else { throw .malformed }
        var names: Set<String> = []
        for answer in answers {
            guard names.insert(answer.name).inserted, offers.contains(where: { $0.name == answer.name }) else {
                throw .notOffered
            }
        }
        guard answers.count == 1, answers[0].name == name else { throw .unsupported }
        let answer = try PerMessageDeflate(answers[0], isOffer: false)
        // A server ignores offers that it does not understand.
        let known = offers.filter { $0.name == name }.compactMap { try? PerMessageDeflate($0, isOffer: true) }
        guard known.contains(where: answer.fits) else { throw .mismatch }
        return answer
    }
}
