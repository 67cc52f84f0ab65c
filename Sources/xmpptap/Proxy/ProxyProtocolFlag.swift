internal import TapNetwork

/// What `--proxy-protocol` was given once: one word, or several with commas between them.
struct ProxyProtocolFlag: Equatable {
    /// One thing to do.
    enum Word: String, CaseIterable {
        case accept
        case send
        case sendV1 = "send-v1"
    }

    let words: [Word]

    init(_ text: String) throws(Failure) {
        var words: [Word] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let word = Word(rawValue: String(part)) else {
                throw .usage("write accept, send or send-v1; several with commas between them")
            }
            words.append(word)
        }
        self.words = words
    }

    /// All that was given, together.
    static func join(
        _ flags: [ProxyProtocolFlag],
        from senders: [AddressRange] = []
    ) throws(Failure) -> ProxyProtocol {
        let words = flags.flatMap(\.words)
        guard !words.contains(.send) || !words.contains(.sendV1) else {
            throw .usage("--proxy-protocol send and send-v1: a server is told once; leave one out")
        }
        guard senders.isEmpty || words.contains(.accept) else {
            throw .usage("--proxy-protocol-from says whose headers are taken; add --proxy-protocol accept")
        }
        return ProxyProtocol(
            accepts: words.contains(.accept),
            senders: senders,
            sends: words.contains(.send) ? .v2 : words.contains(.sendV1) ? .v1 : nil
        )
    }
}
