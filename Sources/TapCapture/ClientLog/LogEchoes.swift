internal import TapRecord

/// Finds the log statements whose items another statement prints too. For example, one statement prints parsed packets
/// and another prints bytes, or one prints a queued item and another prints it when it is sent. A statement is
/// recognised by the shape of its text, see ``LogLead/shape``.
///
/// Openfire's XML debugger prints a stanza as `C2S` and as `INT`. jabberd2 prints a stanza when it queues it and when
/// it writes it. Other lines may separate the two prints of an item. The print of a parsed packet may use different
/// quotes, and may have an additional `from`.
struct LogEchoes {
    /// The shapes whose items another shape prints too.
    private(set) var shapes: Set<[UInt8]> = []

    /// The largest distance between two prints of an item, in fragments.
    private static let reach = 12
    /// The largest number of other items that the first shape may print between the two prints. A larger limit would
    /// match a client that connects again, which repeats a whole login.
    private static let ahead = 2
    /// The smallest number of shared items that makes a shape an echo.
    private static let fewest = 3
    private static let maximumShapes = 64

    private struct Use {
        var items = 0
        /// The number of items that another shape prints too, by the other shape.
        var shared: [[UInt8]: Int] = [:]
        /// The other shapes that print an item of this shape which occurs in one session only.
        var certain: Set<[UInt8]> = []
        var hasTimes = false
        let direction: Direction?
    }

    private struct Print {
        let index: Int
        let shape: [UInt8]
        /// The number of items of the shape up to this one.
        let count: Int
        /// The shapes that have printed the item again.
        var others: Set<[UInt8]> = []
    }

    init(_ fragments: [LogFragment]) {
        var uses: [[UInt8]: Use] = [:]
        var prints: [[UInt8]: [Print]] = [:]
        for (index, fragment) in fragments.enumerated() {
            let shape = fragment.lead.shape
            if uses[shape] == nil {
                guard uses.count < Self.maximumShapes else { return }
                uses[shape] = Use(direction: LogWords.direction(fragment.lead.words))
            }
            if fragment.stamp != nil { uses[shape]?.hasTimes = true }
            for item in fragment.items where item.state == .whole {
                guard let key = Self.key(item) else { continue }
                uses[shape]?.items += 1
                var near = (prints[key.bytes] ?? []).filter { index - $0.index <= Self.reach }
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
                    guard key.isOfOneSession else { continue }
                    uses[shape]?.certain.insert(other)
                    uses[other]?.certain.insert(shape)
                }
                near.append(Print(index: index, shape: shape, count: uses[shape]?.items ?? 0))
                prints[key.bytes] = near
            }
        }
        for (shape, use) in uses {
            for (other, count) in use.shared {
                guard count >= Self.fewest, count * 10 >= use.items * 9, use.certain.contains(other),
                    let partner = uses[other]
                else { continue }
                // Either shape may be the echo of the other: keep the shape with times, or else the shape with more
                // items.
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

    private static let longID = 8

    /// Returns bytes that distinguish an item from others of its session, and whether they also distinguish it from
    /// items of other sessions: accounts that log in at the same time send the same headers, and often the same ids.
    /// Nil if nothing distinguishes the item.
    private static func key(_ item: LogFragment.Item) -> (bytes: [UInt8], isOfOneSession: Bool)? {
        let tag = LogTag(item.bytes[...])
        if tag.isStanza {
            guard let id = tag["id"] else { return nil }
            let text = text(item.bytes)
            let parts: [ArraySlice<UInt8>] = [tag.local, tag["type"] ?? [], id, tag["to"] ?? [], text[...]]
            return (Array(parts.joined(separator: [0])), !text.isEmpty || id.count >= longID)
        }
        let isOfOneSession: Bool
        switch item.evidence.role {
        case .challenge, .response, .request(isLogin: true): isOfOneSession = true
        case .opening: isOfOneSession = item.evidence.direction == .recv && tag.has("id")
        case .features, .request, .answer, .success, .failure: isOfOneSession = false
        default: return nil
        }
        return (item.bytes.lazy.filter { $0 > 0x20 }.map { $0 == 0x22 ? 0x27 : $0 }, isOfOneSession)
    }

    /// Returns the text content of an item without white space.
    private static func text(_ item: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        var rest = item[...]
        while let start = rest.firstIndex(of: 0x3E) {
            rest = rest[(start + 1)...]
            let content = rest.prefix { $0 != 0x3C }
            text += content.lazy.filter { $0 > 0x20 }
            rest = rest[content.endIndex...]
        }
        return text
    }
}
