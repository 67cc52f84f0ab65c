internal import TapDiagnosis
internal import TapRecord
internal import XMPPCore

// Evaluates conditions.
extension RuleEvaluation {
    mutating func holds(_ test: RuleTest, _ tree: () -> Element?, _ state: inout RuleState) throws(PatternTooComplex)
        -> Bool
    {
        switch test {
        case .kind(let kinds): return kinds.contains(RuleKinds(item.head.kind))
        case .type(let types): return hasType(types)
        case .payload(let namespace): return hasPayload(namespace, tree)
        case .inspect(let path, let inspection): return try inspect(path, inspection, tree)
        case .address(let side, let pattern):
            return try address(side).map { address throws(PatternTooComplex) in try pattern.matches(address) } ?? false
        case .with(let pattern):
            if let from = address(.from), try pattern.matches(from) { return true }
            if let to = address(.to) { return try pattern.matches(to) }
            return false
        case .exactly(let side, let text):
            guard let address = address(side) else { return false }
            return address.full == self.text(text, tree)
        case .fullJID(let side): return address(side)?.resource != nil
        case .toSelf: return isToOwnAccount()
        case .clientAddress(let networks):
            guard item.direction == .send, let text = context.clientAddress, let address = AddressNetwork(text) else {
                return false
            }
            return networks.contains { $0.contains(address) }
        case .zone(let zone, let crossing): return crosses(zone, crossing)
        case .inRoster: return contact()?.isListed ?? false
        case .inRosterGroup(let group):
            guard let roster = context.roster, let peer = peer() else { return false }
            return roster.groups(of: String(decoding: peer.bare, as: UTF8.self)).contains(group)
        case .subscribed: return isOwnAccount() || contact()?.state.from ?? false
        case .pendingSubscription: return isOwnAccount() || contact()?.state.isPendingIn ?? false
        case .sentDirectedPresence: return address(.from).map { state.directedPresence.contains($0.full) } ?? false
        case .time(let ranges):
            let now = context.localTime.minute
            return ranges.contains { range in
                range.start <= range.end
                    ? now >= range.start && now < range.end : now >= range.start || now < range.end
            }
        case .day(let days): return days >> UInt8(truncatingIfNeeded: context.localTime.weekday) & 1 == 1
        case .limit(let rate, let text):
            let key = text.map { self.text($0, tree) }
            return set.tables.isOver(rate, key, at: context.now)
        case .marked(let who, let name, let within):
            let mark = who == .origin ? state.marks[name] : account.flatMap { set.tables.mark(of: $0.bare, name) }
            guard let mark else { return false }
            return within.map { context.now.since(mark) < $0 } ?? true
        case .list(let list, let text): return set.tables.contains(list, self.text(text, tree))
        case .scan(let search, let pattern, let list): return try scan(search, pattern, list, tree)
        case .count(let pattern, let search, let comparison, let number):
            var count = 0
            try set.definitions.patterns.values[pattern].forEachMatch(in: searched(search, tree)) { _ in
                count += 1
                return true
            }
            return comparison.holds(count, number)
        case .direction(let direction): return item.direction == direction
        case .phase(let phases): return phases.contains(context.phase)
        case .session(let numbers): return numbers.contains(context.session)
        case .sessionAddress(let pattern):
            guard let account else { return false }
            return try pattern.matches(account)
        case .element(let step): return isNamed(step, tree)
        case .size(let comparison, let size): return comparison.holds(item.bytes.count, size)
        case .roundTrip(let comparison, let duration):
            return context.roundTrip.map { comparison.holds($0, duration) } ?? false
        case .origin(let origin): return context.origin == origin
        case .transport(let transport): return context.transport == transport
        case .every(let number, let counter): return count(counter, &state).isMultiple(of: number)
        case .nth(let numbers, let counter): return numbers.contains(count(counter, &state))
        case .probability(let probability): return state.random() < probability
        }
    }

    /// Returns whether the item has a child in a namespace. Compares the first child with the head; parses the tree
    /// only if there can be further children to compare.
    private mutating func hasPayload(_ namespace: NamespaceKey, _ tree: () -> Element?) -> Bool {
        if edited == nil {
            guard item.head.payloadName != nil else { return false }
            if namespace.namespace != .other, item.head.payloadNamespace.namespace == namespace.namespace {
                return true
            }
        }
        return element(tree)?.firstChild { $0.isIn(namespace) } != nil
    }

    private mutating func isNamed(_ step: StanzaPath.Step, _ tree: () -> Element?) -> Bool {
        if let name = step.name {
            guard item.bytes.slice(item.head.name).equals(name.span) else { return false }
        }
        guard let namespace = step.namespace else { return true }
        guard namespace.namespace == .other else { return item.head.namespace.namespace == namespace.namespace }
        guard item.head.namespace.namespace == .other else { return false }
        return element(tree)?.isIn(namespace) ?? false
    }

    private mutating func inspect(_ path: StanzaPath, _ inspection: RuleTest.Inspection, _ tree: () -> Element?)
        throws(PatternTooComplex) -> Bool
    {
        guard let element = element(tree) else { return false }
        if case .exists = inspection { return path.find(in: element) != nil }
        let found = path.text(in: element)
        switch inspection {
        case .exists: return found != nil
        case .equals(let text): return found != nil && found == self.text(text, tree)
        case .contains(let text):
            let wanted = self.text(text, tree)
            let text = found ?? []
            return text.span.contains(wanted.span)
        // As in mod_firewall, an absent text is treated as an empty one.
        case .lua(let pattern): return try pattern.firstMatch(in: found ?? []) != nil
        case .luaText(let text):
            let source = self.text(text, tree)
            guard source.count <= RuleTest.maximumPatternBytes else { throw PatternTooComplex() }
            guard let pattern = try? LuaPattern(source) else { return false }
            return try pattern.firstMatch(in: found ?? []) != nil
        case .regular(let expression): return try expression.firstMatch(in: found ?? []) != nil
        }
    }

    // MARK: Addresses

    private mutating func crosses(_ zone: Int, _ crossing: RuleTest.Crossing) -> Bool {
        let isFrom = isIn(zone, address(.from))
        let isTo = isIn(zone, address(.to))
        return switch crossing {
        case .entering: isTo && !isFrom
        case .leaving: isFrom && !isTo
        case .either: isFrom != isTo
        }
    }

    private func isIn(_ number: Int, _ address: RuleAddress?) -> Bool {
        guard let address else { return false }
        let zone = set.definitions.zones.values[number]
        if zone.isLocal { return address.domain == account?.domain ?? context.domain.map { RuleAddress($0).domain } }
        return zone.members.contains(address.domain) || zone.members.contains(address.full)
            || zone.members.contains(address.bare)
    }

    private mutating func contact() -> Roster.Contact? {
        guard let roster = context.roster, let peer = peer() else { return nil }
        return roster.contacts[String(decoding: peer.bare, as: UTF8.self)]
    }

    private mutating func isOwnAccount() -> Bool {
        guard let from = address(.from), let to = address(.to) else { return false }
        return from.bare == to.bare
    }

    /// Returns whether the stanza is for the sender's own account. Prosody removes the `to` of these stanzas before it
    /// calls mod_firewall.
    private mutating func isToOwnAccount() -> Bool {
        guard attribute(.to) != nil else { return true }
        guard let to = address(.to), to.resource == nil, let account else { return false }
        return to.full == account.bare && isOwnAccount()
    }

    private func count(_ counter: RuleTest.Counter, _ state: inout RuleState) -> Int {
        switch counter {
        case .session(let number): state.count(number)
        case .shared(let number): set.tables.count(number)
        }
    }

    // MARK: Searches

    private mutating func searched(_ search: Int, _ tree: () -> Element?) -> [UInt8] {
        let path = set.definitions.searches.values[search]
        return element(tree).flatMap { path.text(in: $0) } ?? []
    }

    private mutating func scan(_ search: Int, _ pattern: Int, _ list: Int, _ tree: () -> Element?)
        throws(PatternTooComplex) -> Bool
    {
        let text = searched(search, tree)
        let tables = set.tables
        var isFound = false
        try set.definitions.patterns.values[pattern].forEachMatch(in: text) { match in
            // As in Lua's gmatch, the first capture is used, or the whole match if the pattern has no captures.
            isFound = tables.contains(list, match.bytes(match.captures.isEmpty ? 0 : 1, of: text) ?? [])
            return !isFound
        }
        return isFound
    }
}
