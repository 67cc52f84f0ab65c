internal import TapRecord

/// Finds texts in front of items that another text shows as well: a logger of parsed packets beside one of bytes, or a queue before its socket.
///
/// Openfire's XML debugger prints a stanza as `C2S` and as `INT`, jabberd2 what it queues and what it writes. The two need not be next to each
/// other, and the packet that was parsed has other quotes and a sender.
struct LogEchoes {
    /// The texts whose items are left out.
    private(set) var shapes: Set<[UInt8]> = []

    /// Fragments between the two prints of an item.
    private static let reach = 12
    /// Other items that the first text shows between them: a client that connects again repeats a whole login.
    private static let ahead = 2
    /// Items that both texts show.
    private static let fewest = 3
    private static let mostShapes = 64

    private struct Use {
        var items = 0
        /// Items that another text shows too, by that text.
        var shared: [[UInt8]: Int] = [:]
        var hasTimes = false
        let direction: Direction?
    }

    private struct Print {
        let index: Int
        let shape: [UInt8]
        /// Items of the text up to this one.
        let count: Int
        /// Texts that have shown the item again.
        var others: Set<[UInt8]> = []
    }

    init(_ fragments: [LogFragment]) {
        var uses: [[UInt8]: Use] = [:]
        var prints: [[UInt8]: [Print]] = [:]
        for (index, fragment) in fragments.enumerated() {
            let shape = fragment.lead.shape
            if uses[shape] == nil {
                guard uses.count < Self.mostShapes else { return }
                uses[shape] = Use(direction: LogWords.direction(fragment.lead.words))
            }
            if fragment.stamp != nil { uses[shape]?.hasTimes = true }
            for item in fragment.items where item.state == .whole {
                guard let key = Self.key(item) else { continue }
                uses[shape]?.items += 1
                var near = (prints[key] ?? []).filter { index - $0.index <= Self.reach }
                for place in near.indices where near[place].shape != shape {
                    let other = near[place].shape
                    let between = (uses[other]?.items ?? 0) - near[place].count
                    guard between <= Self.ahead, near[place].others.insert(shape).inserted,
                        Self.agree(uses[shape], uses[other])
                    else {
                        continue
                    }
                    uses[shape]?.shared[other, default: 0] += 1
                    uses[other]?.shared[shape, default: 0] += 1
                }
                near.append(Print(index: index, shape: shape, count: uses[shape]?.items ?? 0))
                prints[key] = near
            }
        }
        for (shape, use) in uses {
            for (other, count) in use.shared {
                guard count >= Self.fewest, count * 10 >= use.items * 9, let partner = uses[other] else { continue }
                // Each may be the other's: that with times is kept, then that with more items.
                let isEqual = (partner.shared[shape] ?? 0) * 10 >= partner.items * 9
                let isKept =
                    use.hasTimes != partner.hasTimes
                    ? use.hasTimes
                    : use.items != partner.items
                        ? use.items > partner.items : shape.lexicographicallyPrecedes(other)
                if !isEqual || !isKept { shapes.insert(shape) }
            }
        }
    }

    private static func agree(_ one: Use?, _ other: Use?) -> Bool {
        guard let one = one?.direction, let other = other?.direction else { return true }
        return one == other
    }

    /// What distinguishes an item from others of the same session; nil if nothing does.
    private static func key(_ item: LogFragment.Item) -> [UInt8]? {
        let tag = LogTag(item.bytes[...])
        if tag.isStanza {
            guard let id = tag["id"] else { return nil }
            return Array([tag.local, tag["type"] ?? [], id, tag["to"] ?? []].joined(separator: [0]))
        }
        switch item.evidence.role {
        case .opening, .features, .request, .answer, .challenge, .response, .success, .failure:
            return item.bytes.lazy.filter { $0 > 0x20 }.map { $0 == 0x22 ? 0x27 : $0 }
        default: return nil
        }
    }
}
