internal import TapNetwork

/// A value of `--proxy-protocol`: words separated by commas.
struct ProxyProtocolFlag: Equatable {
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
                throw .usage("write accept, send or send-v1, or several separated by commas")
            }
            words.append(word)
        }
        self.words = words
    }

    /// Combines all values of the flags.
    static func join(
        _ flags: [ProxyProtocolFlag],
        from senders: [AddressRange] = []
    ) throws(Failure) -> ProxyProtocol {
        let words = flags.flatMap(\.words)
        guard !words.contains(.send) || !words.contains(.sendV1) else {
            throw .usage("--proxy-protocol send and send-v1 exclude each other; leave one out")
        }
        guard senders.isEmpty || words.contains(.accept) else {
            throw .usage("--proxy-protocol-from needs --proxy-protocol accept; add it")
        }
        return ProxyProtocol(
            accepts: words.contains(.accept),
            senders: senders,
            sends: words.contains(.send) ? .v2 : words.contains(.sendV1) ? .v1 : nil
        )
    }
}
