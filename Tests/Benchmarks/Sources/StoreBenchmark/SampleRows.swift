import Glibc
import TapRecord
import TapStore

/// Makes the rows of a server's traffic: words with the frequencies of Zipf's law, random ids, and accounts of which some are
/// far more active than others.
///
/// The stanzas of `StanzaMix` have a few dozen words and names: they flatter every index.
struct SampleRows {
    static let run = "0a1b2c3d4e5f6071"
    /// The most active account: one row in 60 is of it.
    static let account = address(of: 0)
    private static let accounts = 20_000
    private static let contacts = 12
    private static let start: Int64 = 1_788_220_800_000_000_000
    private static let day: Int64 = 86_400_000_000_000

    /// The words, the most frequent first.
    let words: [String]
    private let frequencies: [Double]
    private let count: Int
    private let days: Int
    private var random = SplitMix64(state: 1)
    private var made = 0

    /// - Parameters:
    ///   - count: The number of rows, which are spread evenly over the time.
    ///   - days: The time.
    init(_ count: Int, days: Int) {
        (self.count, self.days) = (count, days)
        var words: [String] = []
        var known: Set<String> = []
        var random = SplitMix64(state: 2)
        let letters = Array("eeeeeetttttaaaaaooooiiiinnnnsssshhhrrrddlluuccmmffwwyyggppbvk")
        while words.count < 40_000 {
            let length = Int.random(in: words.count < 200 ? 2...4 : 3...9, using: &random)
            let word = String((0..<length).map { _ in letters[Int.random(in: letters.indices, using: &random)] })
            if known.insert(word).inserted { words.append(word) }
        }
        self.words = words
        var sum = 0.0
        frequencies = words.indices.map { rank in
            sum += 1 / (Double(rank) + 1.5)
            return sum
        }
    }

    /// Returns the next rows; fewer than `limit` at the end.
    mutating func next(_ limit: Int) -> [AuditRow] {
        let rows = (0..<min(limit, count - made)).map { row(made + $0) }
        made += rows.count
        return rows
    }

    private static func address(of account: Int) -> String { "user\(account)@example\(account % 7).org" }

    private mutating func row(_ index: Int) -> AuditRow {
        let account = Int(Double(Self.accounts) * pow(unit(), 2.4))
        let contact = Int(Double(Self.contacts) * unit() * unit())
        let peer = Int(SplitMix64.mix(UInt64(account * Self.contacts + contact)) % UInt64(Self.accounts))
        let seen = Self.start + Int64(Double(index) * Double(Self.day) * Double(days) / Double(count))
        let isSent = unit() < 0.5
        let kind = unit()
        var row = AuditRow(
            run: Self.run,
            sequence: UInt64(index + 1),
            session: UInt64(account + 1),
            time: Timestamp(nanoseconds: seen),
            account: Self.address(of: account),
            direction: isSent ? .send : .recv,
            kind: kind < 0.75 ? .message : kind < 0.9 ? .presence : .iq,
            size: 200 + Int(random.next() % 512)
        )
        row.resource = "phone.\(account % 300)"
        row.peer = Self.address(of: peer)
        if !isSent { row.peerResource = "phone.\(peer % 300)" }
        switch kind {
        case ..<0.58:
            (row.type, row.id, row.payload, row.body) = ("chat", uuid(), "{jabber:client}body", text())
            if !isSent { (row.stanzaID, row.stanzaBy) = (uuid(), row.account) }
            // Some were sent while the account was offline.
            if !isSent, unit() < 0.02 { row.time = Timestamp(nanoseconds: seen - Int64(unit() * 3.6e13)) }
        case ..<0.75:
            (row.type, row.id) = ("chat", uuid())
            row.payload = "{http://jabber.org/protocol/chatstates}composing"
        case ..<0.9: row.payload = "{http://jabber.org/protocol/caps}c"
        case ..<0.95: (row.type, row.id, row.payload) = ("get", uuid(), "{urn:xmpp:ping}ping")
        default: (row.type, row.id, row.roundTrip) = ("result", uuid(), Int64(unit() * 1e8))
        }
        return row
    }

    private mutating func unit() -> Double { Double(random.next() >> 11) / 9_007_199_254_740_992 }

    private mutating func bytes() -> [UInt8] {
        [random.next(), random.next()].flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> ($0 * 8)) } }
    }

    private mutating func uuid() -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for (index, byte) in bytes().enumerated() {
            if [4, 6, 8, 10].contains(index) { text.append(0x2D) }
            text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns a body of 67 bytes in the mean.
    private mutating func text() -> String {
        let count = 1 + Int(-10 * log(1 - unit()))
        var text = ""
        for index in 0..<count {
            if index > 0 { text += " " }
            text += word()
        }
        return text
    }

    private mutating func word() -> String {
        let wanted = unit() * (frequencies.last ?? 0)
        var (low, high) = (0, frequencies.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if frequencies[middle] < wanted { low = middle + 1 } else { high = middle }
        }
        return words[low]
    }
}

/// The random number generator SplitMix64.
struct SplitMix64: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mix(state)
    }

    static func mix(_ value: UInt64) -> UInt64 {
        var mixed = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
