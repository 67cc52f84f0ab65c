import TapCore

/// Requests for a target, by SOCKS5 and HTTP CONNECT: the answers and the target must not depend on the split, and no
/// result contains a password.
///
/// An input is a mode, two bytes that select the cuts, and the bytes of the client.
enum ProxyRequestTarget {
    private struct Outcome: Equatable {
        var answers: [[UInt8]] = []
        var end = ProxyRequestReader.Event.needMore
        var rest: [UInt8] = []
    }

    private static let password = "Capulet-1597"
    private static let users = try? ProxyUsers(parsing: "juliet:\(password)")

    static func run(_ input: [UInt8]) -> String? {
        guard input.count > 3 else { return nil }
        let (mode, bytes) = (input[0], Array(input[3...]))
        let whole = read(bytes, cuts: [], mode)
        let cuts = FuzzInput.cuts(of: bytes.count, seed: input[1], step: input[2])
        let cut = read(bytes, cuts: cuts, mode)
        guard cut == whole else { return "cut at \(cuts), in one piece:\n\(whole)\nin pieces:\n\(cut)" }
        guard bytes.reversed().starts(with: whole.rest.reversed()) else {
            return "the rest is no end of the input: \(whole)"
        }
        return contradiction(whole)
    }

    private static func read(_ bytes: [UInt8], cuts: [Int], _ mode: UInt8) -> Outcome {
        var reader = ProxyRequestReader(users: mode & 1 == 0 ? nil : users, requiresLogin: mode & 2 != 0)
        var outcome = Outcome()
        var start = 0
        for end in cuts + [bytes.count] {
            reader.append(bytes[start..<end])
            start = end
            reading: while true {
                outcome.end = reader.next()
                switch outcome.end {
                case .answer(let answer): outcome.answers.append(answer)
                case .needMore, .request, .refused: break reading
                }
            }
        }
        outcome.rest = reader.rest
        return outcome
    }

    private static func contradiction(_ outcome: Outcome) -> String? {
        guard outcome.answers.count <= 2, outcome.answers.allSatisfy({ $0.count == 2 && $0[1] != 0xFF }) else {
            return "answers \(outcome.answers)"
        }
        switch outcome.end {
        case .answer: return "ends with an answer"
        case .needMore: return outcome.rest.isEmpty ? nil : "a rest without a request"
        case .refused(let refusal):
            if "\(refusal)".contains(password) { return "the password is in \(refusal)" }
            let answer = refusal.answer
            let isHTTP = answer.starts(with: Array("HTTP/1.1 4".utf8)) || answer.starts(with: Array("HTTP/1.1 5".utf8))
            return isHTTP || [0, 2, 8, 10].contains(answer.count) ? nil : "the answer \(answer)"
        case .request(_, let target):
            guard 1...65535 ~= target.port else { return "port \(target.port)" }
            switch target.host {
            case .name(let name): return 1...255 ~= name.utf8.count ? nil : "the name \(name)"
            case .address(let bytes): return bytes.count == 4 || bytes.count == 16 ? nil : "the address \(bytes)"
            }
        }
    }

    // MARK: Seeds

    static let seeds: [[UInt8]] = {
        let name = Array("xmpp.example.org".utf8)
        let socks: [[UInt8]] = [
            [5, 1, 0, 5, 1, 0, 3, 16] + name + [0x14, 0x66, 0x3C], [5, 2, 0, 2, 5, 1, 0, 1, 192, 0, 2, 1, 0x14, 0x66],
            [5, 1, 0, 5, 1, 0, 4] + [UInt8](repeating: 1, count: 16) + [0x14, 0x67, 0x16, 3, 1],
            [5, 1, 0, 5, 2, 0, 1, 0, 0, 0, 0, 0, 1], [5, 1, 0, 5, 3, 0, 2, 0, 0, 0, 0, 0, 1], [5, 0], [4, 1, 0, 80],
            [5, 1, 2, 1, 6] + Array("juliet".utf8) + [12] + Array(password.utf8) + [5, 1, 0, 3, 16] + name + [0, 1],
            [5, 1, 2, 1, 1, 0x61, 1, 0x62],
        ]
        let http = [
            "CONNECT xmpp.example.org:5222 HTTP/1.1\r\nHost: a\r\n\r\n<stream:stream>", "CONNECT [::1]:1 HTTP/1.0\n\n",
            "CONNECT a:1 HTTP/1.1\r\nProxy-Authorization: Basic anVsaWV0OkNhcHVsZXQtMTU5Nw==\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\n",
        ].map { Array($0.utf8) }
        return (socks + http).flatMap { bytes in [UInt8](0...3).map { [$0, 1, $0 * 3] + bytes } }
    }()
}
