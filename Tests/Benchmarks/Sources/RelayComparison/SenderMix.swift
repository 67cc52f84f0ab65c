import StanzaMix

/// Stanzas as clients send them, each with a unique id.
struct SenderMix {
    private let seed: Int
    private let mix = StanzaMix(count: 400, withSender: false)
    /// The parts of each stanza of the mix before and after its id.
    private let halves: [(head: [UInt8], tail: [UInt8])]
    private static let digits = 16

    /// - Parameters:
    ///   - seed: The seed of the ids. Mixes with even seeds have one text in all messages, those with odd seeds
    ///     another.
    ///   - hasRequests: Whether the mix contains requests, which a client answers when they are returned.
    ///   - isMarked: Whether each stanza has an additional attribute.
    init(seed: Int, hasRequests: Bool = true, isMarked: Bool = false) {
        self.seed = seed
        let (stream, opening) = (mix.stream, Array("<body>".utf8))
        let ranges = mix.stanzas.filter { hasRequests || !stream[$0].starts(with: "<iq".utf8) }
        halves = ranges.map { range in
            var stanza = Array(stream[range])
            if seed % 2 == 1, let body = stanza.firstRange(of: opening) {
                stanza.insert(contentsOf: "so: ".utf8, at: body.upperBound)
            }
            if isMarked, let name = stanza.firstIndex(where: { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: ">") }) {
                stanza.insert(contentsOf: " mark='1'".utf8, at: name)
            }
            guard let place = stanza.firstRange(of: Array(" id='".utf8)),
                let end = stanza[place.upperBound...].firstIndex(of: UInt8(ascii: "'"))
            else { return (stanza, []) }
            return (Array(stanza[..<place.upperBound]), Array(stanza[end...]))
        }
    }

    /// Returns the number of bytes of `count` stanzas.
    func size(of count: Int) -> Int {
        func size(_ half: (head: [UInt8], tail: [UInt8])) -> Int {
            half.head.count + (half.tail.isEmpty ? 0 : Self.digits + half.tail.count)
        }
        let all = halves.reduce(0) { $0 + size($1) }
        return count / halves.count * all + halves.prefix(count % halves.count).reduce(0) { $0 + size($1) }
    }

    /// Sends `count` stanzas from each client, in turn, with one write for each stanza.
    func send(_ count: Int, by clients: [ClientConnection], on loop: EventLoop) throws {
        var stanza: [UInt8] = []
        for index in 0..<count {
            for (number, client) in clients.enumerated() {
                write(index, number, into: &stanza)
                stanza.withUnsafeBufferPointer { client.send($0) }
                guard client.waiting > 0 else { continue }
                guard loop.run(60, until: { client.waiting == 0 }) else { throw Failure("nobody reads") }
            }
            // Read incoming data in between, too.
            if index % 16 == 0 { loop.turn(0) }
        }
    }

    /// Returns the stanzas in pieces of at least `bytes` bytes.
    func pieces(of count: Int, _ bytes: Int) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var piece: [UInt8] = []
        var stanza: [UInt8] = []
        for index in 0..<count {
            write(index, 0, into: &stanza)
            piece += stanza
            guard piece.count >= bytes || index == count - 1 else { continue }
            pieces.append(piece)
            piece.removeAll(keepingCapacity: true)
        }
        return pieces
    }

    private func write(_ index: Int, _ client: Int, into stanza: inout [UInt8]) {
        let (head, tail) = halves[index % halves.count]
        stanza.removeAll(keepingCapacity: true)
        stanza += head
        guard !tail.isEmpty else { return }
        var id = UInt64(seed) << 48 | UInt64(client) << 40 | UInt64(index)
        for _ in 0..<Self.digits {
            let digit = UInt8(id >> 60)
            stanza.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
            id <<= 4
        }
        stanza += tail
    }
}
