internal import TapRecord

/// The format of a log, learned from its own lines: the direction of the items after each text, the value that names
/// the session, and whether each item is printed twice.
///
/// Content comes before words. A text has the direction of items that only one side can send. If no such item follows a
/// text, its words decide: first the words that the log uses for one direction only, then common words. A server means
/// the common words the other way round: an item that a server's log calls received was sent by the client.
struct LogFormat {
    /// Whether a server wrote the log, so that common words mean the opposite direction.
    private(set) var isServers = false
    /// Whether each item is printed twice in a row: on the console and in a file, or by two loggers.
    private(set) var isDoubled = false
    /// Whether sessions overlap and no value in the text distinguishes them, so that the session of an item is unknown.
    private(set) var isEntangled = false
    /// The shapes whose items another shape shows too.
    private var echoes: Set<[UInt8]> = []
    /// The place of the value that names the session of an item; nil if the log has one session at a time.
    private(set) var sessionPlace: [UInt8]?
    /// The directions of items whose lines name the session.
    private var namedSides: Set<Direction> = []
    /// The pairs of values that name a session, if its two directions have different values; nil if both have the same
    /// value.
    private var pairs: SessionPairs?
    /// The direction of each shape; nil for a shape in front of items of both sides.
    private var directions: [[UInt8]: Direction?] = [:]
    /// Votes for the direction of each word, one for each shape with items that only one side can send.
    private var wordUses: [[UInt8]: Votes] = [:]
    /// Words that indicate no direction, even if all items after them had the same direction so far.
    private var sharedWords: Set<[UInt8]> = []
    /// For shapes that both sides share: the place whose value gives the direction, and the direction of each value.
    /// Some programs print a number there.
    private var places: [[UInt8]: (place: [UInt8], values: [[UInt8]: Direction])] = [:]
    /// The directions of iq requests by id, for items whose text does not give the direction.
    private var requests: [[UInt8]: Direction] = [:]

    private struct Votes {
        var sent = 0
        var received = 0

        mutating func add(_ direction: Direction) {
            if direction == .send { sent += 1 } else { received += 1 }
        }

        /// The direction of at least four fifths of the votes; nil otherwise.
        var direction: Direction? {
            let total = sent + received
            guard total > 0 else { return nil }
            if sent * 5 >= total * 4 { return .send }
            return received * 5 >= total * 4 ? .recv : nil
        }
        var isMixed: Bool { sent > 0 && received > 0 }
    }

    /// Creates the format of a log of which nothing is known: directions come from content and common words.
    init() {}

    /// Creates a format that is learned from the fragments at the beginning of a log, or from all fragments.
    init(learning all: [LogFragment]) {
        echoes = LogEchoes(all).shapes
        let fragments = echoes.isEmpty ? all : all.filter { !echoes.contains($0.lead.shape) }
        var strong: [[UInt8]: Votes] = [:]
        var weak: [[UInt8]: Votes] = [:]
        for fragment in fragments {
            for item in fragment.items.lazy.map(\.evidence) {
                guard let direction = item.direction else { continue }
                if item.isWeak {
                    weak[fragment.lead.shape, default: Votes()].add(direction)
                } else {
                    strong[fragment.lead.shape, default: Votes()].add(direction)
                }
            }
        }
        var leads: [[UInt8]: LogLead] = [:]
        for fragment in fragments { leads[fragment.lead.shape] = fragment.lead }
        for (shape, votes) in strong {
            guard let direction = votes.direction, let lead = leads[shape] else { continue }
            for word in Set(lead.words) { wordUses[word, default: Votes()].add(direction) }
        }
        learnSharedWords(Array(leads.values))
        learnOrientation(leads, strong, weak)
        for (shape, lead) in leads {
            if let votes = strong[shape] {
                directions[shape] = .some(votes.direction)
                if votes.direction == nil { places[shape] = Self.place(in: fragments, shape) }
            } else if let direction = byWords(lead) ?? weak[shape]?.direction {
                directions[shape] = .some(direction)
            }
        }
        isDoubled = Self.isDoubled(fragments)
        let found = SessionPlace(fragments.map { ($0, direction(of: $0)) }, isDoubled: isDoubled)
        sessionPlace = found.place
        namedSides = found.sides
        isEntangled = found.crossings > 0
        if found.isPaired { pairs = SessionPairs() }
    }

    /// Returns the first place of a shape that has different values for items of the client and of the server; nil if
    /// there is none.
    private static func place(
        in fragments: [LogFragment],
        _ shape: [UInt8]
    ) -> (place: [UInt8], values: [[UInt8]: Direction])? {
        var votes: [[UInt8]: [[UInt8]: Votes]] = [:]
        var order: [[UInt8]] = []
        for fragment in fragments where fragment.lead.shape == shape {
            for item in fragment.items.lazy.map(\.evidence) {
                guard let direction = item.direction, !item.isWeak else { continue }
                for slot in fragment.lead.slots {
                    if votes[slot.place] == nil { order.append(slot.place) }
                    votes[slot.place, default: [:]][slot.value, default: Votes()].add(direction)
                }
            }
        }
        for place in order {
            guard let values = votes[place], (2...4).contains(values.count), !values.values.contains(where: \.isMixed)
            else { continue }
            return (place, values.compactMapValues(\.direction))
        }
        return nil
    }

    /// Finds words that indicate no direction, such as a level or the name of the program: they occur beside common
    /// words of both directions, or in front of all items.
    private mutating func learnSharedWords(_ leads: [LogLead]) {
        var uses: [[UInt8]: (count: Int, votes: Votes)] = [:]
        for lead in leads {
            let direction = LogWords.direction(lead.words)
            for word in Set(lead.words) {
                uses[word, default: (0, Votes())].count += 1
                if let direction { uses[word]?.votes.add(direction) }
            }
        }
        for (word, use) in uses where use.votes.isMixed || leads.count > 1 && use.count == leads.count {
            sharedWords.insert(word)
        }
    }

    /// Learns whether the common words mean the opposite direction in this log, because the writer is a server.
    private mutating func learnOrientation(
        _ leads: [[UInt8]: LogLead],
        _ strong: [[UInt8]: Votes],
        _ weak: [[UInt8]: Votes]
    ) {
        for votes in [strong, weak] {
            var (agreeing, opposed) = (0, 0)
            for (shape, votes) in votes {
                guard let direction = votes.direction, let lead = leads[shape],
                    let wordDirection = usualWords(lead)
                else { continue }
                let count = votes.sent + votes.received
                if wordDirection == direction { agreeing += count } else { opposed += count }
            }
            guard agreeing == opposed else {
                isServers = opposed > agreeing
                return
            }
        }
        isServers = leads.values.contains(where: LogWords.namesServerSession)
    }

    /// Returns the direction of a fragment's items; nil if neither the items nor the text around them show it.
    mutating func direction(of fragment: LogFragment) -> Direction? {
        if let known = directions[fragment.lead.shape], let direction = known { return direction }
        if let (place, values) = places[fragment.lead.shape],
            let value = fragment.lead.slots.first(where: { $0.place == place })?.value, let direction = values[value]
        {
            return direction
        }
        let evidence = fragment.items.map(\.evidence)
        let direction =
            evidence.first { $0.direction != nil && !$0.isWeak }?.direction
            ?? (directions[fragment.lead.shape] == nil ? byWords(fragment.lead) : nil)
            ?? answers(evidence) ?? evidence.first { $0.direction != nil }?.direction
        for case .query(let id) in evidence.map(\.role) where !id.isEmpty && requests.count < 10_000 {
            requests[id] = direction
        }
        return direction
    }

    /// Returns the direction of an answer, which is opposite to its request; nil if no request is known.
    private func answers(_ evidence: [LogEvidence]) -> Direction? {
        for case .reply(let id) in evidence.map(\.role) { if let request = requests[id] { return request.opposite } }
        return nil
    }

    /// Returns the direction that words indicate: first the words that this log uses in one direction only, then common
    /// words.
    private func byWords(_ lead: LogLead) -> Direction? {
        var votes = Votes()
        for word in Set(lead.words) {
            guard !sharedWords.contains(word), let uses = wordUses[word], !uses.isMixed, let direction = uses.direction
            else { continue }
            votes.add(direction)
        }
        if let direction = votes.direction { return direction }
        return usualWords(lead).map { isServers && !Self.isOpenedByServer(lead) ? $0.opposite : $0 }
    }

    /// Returns the direction that common words indicate, without the words that this log prints for both directions.
    private func usualWords(_ lead: LogLead) -> Direction? {
        LogWords.direction(lead.words.filter { wordUses[$0]?.isMixed != true })
    }

    /// Whether the server opened the session. If so, the words in front of its items have the same direction as in a
    /// client's log.
    private static func isOpenedByServer(_ lead: LogLead) -> Bool {
        lead.slots.contains { $0.value.starts(with: "s2sout".utf8) }
    }

    /// Whether lines of a direction usually name the session; true if the direction is unknown.
    func namesSession(_ direction: Direction?) -> Bool { direction.map(namedSides.contains) ?? true }

    /// Returns the value that names the session of a fragment; empty if the log has one session at a time, nil if the
    /// line names no session.
    mutating func session(of fragment: LogFragment, _ direction: Direction?) -> [UInt8]? {
        guard let sessionPlace else { return [] }
        let value = fragment.lead.slots.first { $0.place == sessionPlace }?.value
        guard let value, pairs != nil, let direction else { return value }
        return pairs?.session(value, direction)
    }

    /// Whether another fragment shows the items of this fragment too, so that this fragment is left out.
    func isEcho(_ fragment: LogFragment) -> Bool { echoes.contains(fragment.lead.shape) }

    /// Returns the value that names the session of a fragment, from its line alone; empty if the log has one session at
    /// a time, nil if the line does not show the session.
    func knownSession(of fragment: LogFragment) -> [UInt8]? {
        guard let sessionPlace else { return [] }
        let value = fragment.lead.slots.first { $0.place == sessionPlace }?.value
        return pairs.map { pairs in value.flatMap { pairs.known($0) } } ?? value
    }

    /// Whether most items that no peer repeats are printed twice in a row.
    private static func isDoubled(_ fragments: [LogFragment]) -> Bool {
        var (single, double) = (0, 0)
        var index = 0
        while index < fragments.count {
            let isUnique = fragments[index].isUnrepeatable
            let isSame = index + 1 < fragments.count && fragments[index].isSame(as: fragments[index + 1])
            if isUnique { if isSame { double += 1 } else { single += 1 } }
            index += isSame ? 2 : 1
        }
        return double > 1 && double > single * 4
    }
}

extension LogFragment {
    /// Whether two fragments show the same items. White space and the kind of quotes do not matter, because two loggers
    /// may differ in these.
    func isSame(as other: LogFragment) -> Bool {
        guard items.count == other.items.count else { return false }
        return zip(items, other.items).allSatisfy { one, other in
            one.bytes == other.bytes
                || one.bytes.lazy.filter { $0 > 0x20 }.elementsEqual(other.bytes.lazy.filter { $0 > 0x20 }) {
                    $0 == $1 || $0 == 0x27 && $1 == 0x22 || $0 == 0x22 && $1 == 0x27
                }
        }
    }

    /// Whether this fragment prints the items of the previous fragment again. This is true of items that no peer sends
    /// twice in a row, such as headers, features and requests to authenticate. It is also true of stanzas and of requests
    /// to enable stream management after a different text, which a second logger or statement prints. After the same text with other values, the items belong to another session.
    func repeats(_ previous: LogFragment?) -> Bool {
        guard let previous else { return false }
        // A client that gets no answer connects again and sends the same header.
        if let earlier = previous.stamp, let stamp, stamp.time.nanoseconds &- earlier.time.nanoseconds > Self.doubling,
            lead.shape == previous.lead.shape
        {
            return false
        }
        let isAnotherText = lead.shape != previous.lead.shape
        let isPossible =
            isUnrepeatable
            ? isAnotherText || lead.slots == previous.lead.slots
            : isAnotherText
                && items.allSatisfy { item in
                    let tag = LogTag(item.bytes[...])
                    return tag.isStanza || tag.isNamed("enable") || tag.isNamed("resume")
                }
        return isPossible && isSame(as: previous)
    }

    /// The longest time between two prints of an item by one logger, in nanoseconds.
    private static let doubling: Int64 = 1_000_000_000

    /// Whether the fragment has an item that no peer sends twice in a row.
    fileprivate var isUnrepeatable: Bool { items.contains { $0.evidence.isUnrepeatable } }
}

/// Matches the two values of a session if each direction has a separate one: those of ejabberd's receiver and of its
/// c2s process.
///
/// A server answers one client before the next: a new value is matched with the oldest unmatched value of the other
/// direction.
private struct SessionPairs {
    private var sessions: [[UInt8]: [UInt8]] = [:]
    private var alone: [Direction: [[UInt8]]] = [:]

    /// Returns the session of a value that occurred before; nil for a new value.
    func known(_ value: [UInt8]) -> [UInt8]? { sessions[value] }

    mutating func session(_ value: [UInt8], _ direction: Direction) -> [UInt8] {
        if let known = sessions[value] { return known }
        var session = value
        if let other = alone[direction.opposite]?.first {
            alone[direction.opposite]?.removeFirst()
            session = other
        } else {
            alone[direction, default: []].append(value)
        }
        sessions[value] = session
        return session
    }
}

/// Finds the place in the text around items whose value distinguishes the sessions of a log.
///
/// A grouping of the items by a value is good if each group is a possible session: answers follow requests, and a
/// stream opens only when it may. Of the places that lead to fewer impossible sessions than no grouping does, the best
/// one is used.
private struct SessionPlace {
    private(set) var place: [UInt8]?
    /// The directions of the items that have a value at this place in their text.
    private(set) var sides: Set<Direction> = []
    /// Whether client and server have different values for a session.
    private(set) var isPaired = false
    /// The number of items that only another session can explain, such as answers without a request: the grouping mixes
    /// sessions.
    private(set) var crossings = 0

    private struct Step {
        var role: LogEvidence.Role
        var direction: Direction?
        var recipient: [UInt8]?
        var item: LogAttribution.Item
    }

    /// The largest number of places that are examined; a log has few.
    private static let maximumCount = 64

    init(_ fragments: [(LogFragment, Direction?)], isDoubled: Bool) {
        var values: [[UInt8]: Set<[UInt8]>] = [:]
        var order: [[UInt8]] = []
        for (fragment, _) in fragments {
            for slot in fragment.lead.slots {
                if values[slot.place] == nil {
                    guard values.count < Self.maximumCount else { continue }
                    order.append(slot.place)
                }
                values[slot.place, default: []].insert(slot.value)
            }
        }
        var steps: [(fragment: LogFragment, steps: [Step])] = []
        var previous: LogFragment?
        for (fragment, direction) in fragments {
            if isDoubled, let last = previous, last.isSame(as: fragment) {
                previous = nil
                continue
            }
            guard !fragment.repeats(previous) else { continue }
            previous = fragment
            steps.append(
                (
                    fragment,
                    fragment.items.lazy.map(\.evidence).map {
                        Step(
                            role: $0.role,
                            direction: direction ?? $0.direction,
                            recipient: $0.recipient,
                            item: LogAttribution.Item($0, direction)
                        )
                    }
                )
            )
        }
        let requests = Set(
            steps.flatMap(\.steps).compactMap { step -> [UInt8]? in
                if case .query(let id) = step.role { id } else { nil }
            }
        )
        let single = Self.judge(steps, nil, requests)
        var best = single.faults
        crossings = single.crossings
        var groups = 1
        for candidate in order {
            guard let count = values[candidate]?.count, count > 1, count * 2 <= fragments.count else { continue }
            for paired in [false, true] where !paired || Self.isOneSided(steps, candidate) {
                let found = Self.judge(steps, candidate, requests, paired: paired)
                let isBetter = found.faults < best || found.faults == best && place != nil && count < groups
                // Sessions that follow one another lead to no fault even without grouping.
                let isEqual = found.faults == best && place == nil && found.isPlausible
                guard isBetter || isEqual else { continue }
                (best, place, groups, isPaired, crossings) = (found.faults, candidate, count, paired, found.crossings)
                sides = Self.sides(steps, candidate)
            }
        }
    }

    /// Returns the directions of the items that have a value at a place in their text.
    private static func sides(_ steps: [(fragment: LogFragment, steps: [Step])], _ place: [UInt8]) -> Set<Direction> {
        var sides: Set<Direction> = []
        for (fragment, steps) in steps where fragment.lead.slots.contains(where: { $0.place == place }) {
            for step in steps { if let direction = step.direction { sides.insert(direction) } }
        }
        return sides
    }

    /// Whether each value of a place belongs to one direction, and both directions have values.
    private static func isOneSided(_ steps: [(fragment: LogFragment, steps: [Step])], _ place: [UInt8]) -> Bool {
        var sides: [[UInt8]: Direction] = [:]
        for (fragment, steps) in steps {
            guard let value = fragment.lead.slots.first(where: { $0.place == place })?.value else { continue }
            for step in steps {
                guard let direction = step.direction, sides[value, default: direction] == direction else {
                    return false
                }
                sides[value] = direction
            }
        }
        return Set(sides.values).count == 2
    }

    /// Rates a grouping: `faults` counts items that are impossible in their group, `crossings` counts items that only
    /// another session can explain. A grouping that avoids no fault is plausible if each group begins with the opening
    /// of a stream, or if the groups alternate and have items of both sides.
    private static func judge(
        _ steps: [(fragment: LogFragment, steps: [Step])],
        _ place: [UInt8]?,
        _ requests: Set<[UInt8]>,
        paired: Bool = false
    ) -> (faults: Int, crossings: Int, isPlausible: Bool) {
        let named = place.map { sides(steps, $0) } ?? []
        var hasAll = true
        // A place may hold times if its values never recur.
        var (isMixed, latest) = (false, [UInt8]?.none)
        var groups: [[UInt8]: Group] = [:]
        var attribution = LogAttribution()
        var pairs = SessionPairs()
        for (fragment, steps) in steps {
            hasAll = hasAll && (place == nil || fragment.lead.slots.contains { $0.place == place })
            var known = place.flatMap { place in fragment.lead.slots.first { $0.place == place }?.value }
            if paired, let direction = steps.first?.direction { known = known.map { pairs.session($0, direction) } }
            let isUsual = steps.first?.direction.map(named.contains) ?? true
            let value =
                place == nil ? [] : attribution.session(steps.map(\.item), value: known, isUsual: isUsual)
            if value != latest { isMixed = isMixed || groups[value] != nil }
            latest = value
            for step in steps { groups[value, default: Group()].add(step, requests) }
        }
        let all = groups.values
        let alone = all.count { $0.count == 1 }
        let isPlausible =
            all.allSatisfy(\.beginsWithOpening)
            || hasAll && isMixed && alone * 2 <= all.count
                && all.allSatisfy { $0.count == 1 || $0.directions.count == 2 }
        // Some logs leave out requests that hold a password: then answers without a request prove nothing.
        let showsRequests = all.reduce(0) { $0 + $1.requestCount } >= all.reduce(0) { $0 + $1.answers }
        let crossings = all.reduce(0) { $0 + $1.crossings + (showsRequests ? $1.unrequested : 0) }
        let faults = all.reduce(0) { $0 + $1.faults } + attribution.ambiguities
        return (faults, crossings + attribution.ambiguities, isPlausible)
    }

    /// The state of one session after the items read so far.
    private struct Group {
        var faults = 0
        /// The number of faults that only an item of another session can cause.
        var crossings = 0
        var requestCount = 0
        var answers = 0
        /// Answers to requests that are not in the group.
        var unrequested = 0
        var beginsWithOpening = false
        var count = 0
        var directions: Set<Direction> = []
        private var hasBegun: Bool { count > 0 }
        private var isOpen = false
        private var mayRestart = true
        private var awaitsHeader = false
        private var pending = 0
        private var isChallenged = false
        private var account: [UInt8]?
        private var queries: Set<[UInt8]> = []

        private mutating func cross() {
            faults += 1
            crossings += 1
        }

        mutating func add(_ step: Step, _ requests: Set<[UInt8]>) {
            defer { count += 1 }
            if let direction = step.direction { directions.insert(direction) }
            if step.direction == .recv, let recipient = step.recipient {
                // A server sends a client only stanzas to its account (RFC 6120 §8.1).
                if let account, account != recipient { faults += 1 }
                account = recipient
            }
            if !hasBegun { beginsWithOpening = step.role == .opening && step.direction == .send }
            switch step.role {
            case .opening where step.direction == .send:
                if isOpen, !mayRestart { faults += 1 }
                isOpen = true
                mayRestart = false
                awaitsHeader = true
                pending = 0
            case .opening:
                if isOpen, !awaitsHeader { cross() }
                awaitsHeader = false
            case .features: if hasBegun, !isOpen { faults += 1 }
            case .request:
                requestCount += 1
                if isOpen, pending > 0, !awaitsHeader { cross() }
                pending += 1
            case .response: if !isChallenged { faults += 1 }
            case .challenge:
                isChallenged = true
                if pending == 0 { faults += 1 }
            case .success, .failure, .answer:
                answers += 1
                if pending == 0 { faults += 1 }
                if pending == 0, isOpen { unrequested += 1 }
                pending = max(0, pending - 1)
                mayRestart = mayRestart || step.role != .failure
            case .end: mayRestart = true
            case .query(let id): queries.insert(id)
            case .reply(let id): if !queries.contains(id), requests.contains(id) { faults += 1 }
            case .other: break
            }
        }
    }
}
