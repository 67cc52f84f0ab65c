internal import TapRecord
internal import XMPPCore

// Executes actions.
extension RuleEvaluation {
    mutating func carryOut(_ step: RuleStep, _ tree: () -> Element?, _ state: inout RuleState) -> Flow {
        if context.origin == .tap, step.alters { return refuse("it does not apply to what xmpptap sends itself") }
        hasRefusedEdit = false
        let flow = perform(step, tree, &state)
        guard hasRefusedEdit, set.rules[current].dropsUnedited, context.origin != .tap else { return flow }
        if isRequest { remark(.blackhole) }
        return decide(.drop)
    }

    private mutating func perform(_ step: RuleStep, _ tree: () -> Element?, _ state: inout RuleState) -> Flow {
        switch step {
        case .pass:
            verdict.decidedBy = place
            return .passed
        case .return: return .returned
        case .drop:
            if isRequest { remark(.blackhole) }
            return decide(.drop)
        case .jump(let chain):
            let flow = run(set.chains[chain], tree, &state)
            // The rules of the chain have handled refused edits by their own `refused_edit` setting.
            hasRefusedEdit = false
            return flow == .returned ? .next : flow
        case .bounce(let condition):
            guard item.head.kind != .nonza else { return refuse("BOUNCE applies only to stanzas") }
            if !isAnswer { answer(.bounce) { $0.error(condition) } }
            return decide(.drop)
        case .reply(let text): reply(text, tree)
        case .redirect(let text): return redirect(text, tree, &state)
        case .copy(let text): copy(text, tree)
        case .forward(let text): forward(text, tree)
        case .unsubscribeSender: unsubscribe()
        case .strip(let step):
            edit(tree, &state) { element, writer, content in
                writer.start(element, inheriting: content)
                writer.contents(of: element) { step.matches($0, in: element) }
                writer.end()
                return element.firstChild { step.matches($0, in: element) } != nil
            }
        case .injectChild(let text):
            let xml = xmlText(text, tree)
            edit(tree, &state) { element, writer, content in
                writer.start(element, inheriting: content)
                writer.contents(of: element)
                writer.verbatim(xml)
                writer.end()
                return true
            }
        case .set(let path, let setting): set(path, setting, tree, &state)
        case .replace(let path, let text): replace(path, xmlText(text, tree), tree, &state)
        case .remove(let path): change(path, .remove, tree, &state)
        case .mark(.origin, let name): state.mark(name, at: context.now)
        case .unmark(.origin, let name): state.unmark(name)
        case .mark(.user, let name): if let account { self.set.tables.mark(account.bare, name, at: context.now) }
        case .unmark(.user, let name): if let account { self.set.tables.mark(account.bare, name, at: nil) }
        case .add(let list, let text): self.set.tables.add(self.text(text, tree), to: list)
        case .log(let level, let text): act(.log(level, String(decoding: self.text(text, tree), as: UTF8.self)))
        case .trace(let tag): if let tag { verdict.tags.append(tag) }
        case .delay(let delay, let jitter): act(.delay(delay + Int64(Double(jitter) * state.random())))
        case .duplicate(let copies): act(.duplicate(copies))
        case .pause: act(.pause)
        case .record(let isOn): act(.record(isOn))
        case .level(let level): act(.level(level))
        case .redact(let path): act(.redact(path))
        case .fault(let fault): return carryOut(fault)
        }
        return .next
    }

    private mutating func act(_ action: Verdict.Action) { verdict.actions.append((place, action)) }

    /// Injects a stanza; returns false if it exceeds the receiver's size limit.
    @discardableResult
    private mutating func inject(_ direction: Direction, _ bytes: [UInt8], _ why: Verdict.Injection) -> Bool {
        let limit = context.maximumBytes(direction)
        guard bytes.count <= limit else {
            remark(.notHere("\(why.rawValue): \(bytes.count) bytes, the receiver accepts at most \(limit)"))
            return false
        }
        act(.inject(direction, bytes, why))
        return true
    }

    private mutating func decide(_ decision: Verdict.Decision) -> Flow {
        verdict.decision = decision
        verdict.decidedBy = place
        if decision != .pass { verdict.edited = nil }
        return .decided
    }

    /// Skips an action that does not apply to this item.
    private mutating func refuse(_ what: String) -> Flow {
        remark(.notHere(what))
        return .next
    }

    private mutating func carryOut(_ fault: RuleFaultAction) -> Flow {
        switch fault {
        case .stall, .throttle, .slice:
            act(.fault(fault))
            return .next
        case .saslFailure:
            let namespace = item.head.namespace.namespace
            guard namespace.isSASL, item.direction == .send else {
                return refuse("SASL FAILURE applies only to the client's SASL elements")
            }
        case .loseAck:
            guard item.head.namespace.namespace == .streamManagement, item.bytes.slice(item.head.name).equals("a")
            else {
                return refuse("LOSE ACK applies only to <a/>")
            }
        default: break
        }
        return decide(.fault(fault))
    }

    // MARK: Injected stanzas

    /// The direction of replies to the item.
    private var back: Direction { item.direction.opposite }

    /// Whether sent stanzas need a `from`: servers and components set both addresses, a client omits `from` (RFC 6120
    /// §8.1.2.1).
    private var namesSender: Bool { context.content != .client }

    /// Injects a stanza with the same kind and id in the opposite direction.
    private mutating func answer(_ why: Verdict.Injection, _ body: (inout StanzaWriter) -> Void) {
        let to = address(.from).map { String(decoding: $0.full, as: UTF8.self) }
        // A stanza without `to` is for the account itself, so the reply has no `from`.
        let from = attribute(.to) == nil ? nil : address(.to).map { String(decoding: $0.full, as: UTF8.self) }
        var writer = StanzaWriter(
            kind: item.head.kind,
            id: attribute(.id).map { String(decoding: $0, as: UTF8.self) },
            from: back == .send && !namesSender ? nil : from,
            to: to
        )
        writer.type = attribute(.type).map { String(decoding: $0, as: UTF8.self) }
        body(&writer)
        inject(back, writer.bytes, why)
    }

    private mutating func reply(_ text: RuleText, _ tree: () -> Element?) {
        guard item.head.kind != .nonza, !isAnswer else { return remark(.notHere("a reply to an error or result")) }
        let body = String(decoding: self.text(text, tree), as: UTF8.self)
        answer(.reply) { writer in
            if writer.kind == .iq { writer.type = "result" }
            writer.body(body)
        }
    }

    /// Evaluates a text that must be a JID; returns nil and adds a remark if it is not.
    private mutating func target(_ text: RuleText, _ tree: () -> Element?) -> String? {
        let jid = String(decoding: self.text(text, tree), as: UTF8.self)
        guard item.head.kind != .nonza else {
            remark(.notHere("COPY, FORWARD and REDIRECT apply only to stanzas"))
            return nil
        }
        guard Address(jid).jid != nil else {
            remark(.notHere("\"\(jid)\" is not a JID"))
            return nil
        }
        return jid
    }

    /// Redirects a stanza: changes `to` if the client sent it; otherwise sends a copy with the new `to` to the server.
    private mutating func redirect(_ text: RuleText, _ tree: () -> Element?, _ state: inout RuleState) -> Flow {
        guard let jid = target(text, tree) else { return .next }
        guard item.direction == .recv else {
            edit(tree, &state) { element, writer, content in
                writer.element(element, inheriting: content, setting: ["to": jid])
                return true
            }
            verdict.decidedBy = place
            return .decided
        }
        guard let copy = copied(to: jid, tree) else { return .next }
        return inject(.send, copy, .redirect) ? decide(.drop) : .next
    }

    private mutating func copy(_ text: RuleText, _ tree: () -> Element?) {
        guard let jid = target(text, tree), let copy = copied(to: jid, tree) else { return }
        inject(.send, copy, .copy)
    }

    /// Returns a copy of the stanza with a new `to`, for sending in the name of the account.
    private mutating func copied(to jid: String, _ tree: () -> Element?) -> [UInt8]? {
        guard let element = element(tree) else { return nil }
        let from = namesSender ? address(.to).map { String(decoding: $0.full, as: UTF8.self) } : nil
        return XMLWriter.bytes {
            $0.element(element, inheriting: context.content.uri.description, setting: ["to": jid, "from": from])
        }
    }

    /// Forwards the stanza as described in XEP-0297.
    private mutating func forward(_ text: RuleText, _ tree: () -> Element?) {
        guard let jid = target(text, tree), let element = element(tree) else { return }
        let from = address(.from).map { String(decoding: $0.full, as: UTF8.self) }
        let to = address(.to).map { String(decoding: $0.full, as: UTF8.self) }
        let bytes = XMLWriter.bytes {
            $0.element("message", ["to": jid, "from": namesSender ? to : nil]) {
                $0.element("forwarded", .forward) {
                    $0.element(element, inheriting: Namespace.forward.uri.description, setting: ["from": from])
                }
            }
        }
        inject(.send, bytes, .forward)
    }

    private mutating func unsubscribe() {
        guard item.direction == .recv, let sender = address(.from) else {
            return remark(.notHere("UNSUBSCRIBE SENDER applies only to stanzas from the server"))
        }
        let from = namesSender ? address(.to).map { String(decoding: $0.bare, as: UTF8.self) } : nil
        let to = String(decoding: sender.bare, as: UTF8.self)
        let bytes = XMLWriter.bytes { $0.element("presence", ["type": "unsubscribed", "from": from, "to": to]) }
        inject(.send, bytes, .unsubscribe)
    }

    // MARK: Edits

    private mutating func set(
        _ path: StanzaPath,
        _ setting: RuleStep.Setting,
        _ tree: () -> Element?,
        _ state: inout RuleState
    ) {
        switch setting {
        case .text(let text): change(path, .text(self.text(text, tree)), tree, &state)
        case .replacing(let number, let text):
            let pattern = self.set.definitions.patterns.values[number]
            guard let element = element(tree) else { return refuseEdit("the element cannot be read") }
            var changes: [[UInt8]: [UInt8]] = [:]
            var room = context.maximumBytes
            for value in path.texts(in: element) where changes[value] == nil && room >= 0 {
                let changed = replaced(value, pattern, text, tree)
                room -= changed.count
                changes[value] = changed
            }
            guard room >= 0 else { return refuseEdit("more than \(context.maximumBytes) bytes") }
            change(path, .texts(changes), tree, &state)
        }
    }

    /// Replaces each match of a pattern; returns the text unchanged if the pattern is too complex.
    private mutating func replaced(_ value: [UInt8], _ pattern: TextPattern, _ text: RuleText, _ tree: () -> Element?)
        -> [UInt8]
    {
        var matches: [PatternMatch] = []
        do throws(PatternTooComplex) {
            try pattern.forEachMatch(in: value) {
                matches.append($0)
                return true
            }
        } catch {
            remark(.tooComplex)
            hasRefusedEdit = true
            return value
        }
        var result: [UInt8] = []
        var copied = 0
        for match in matches where result.count <= context.maximumBytes {
            result += value[copied..<match.range.lowerBound]
            result += self.text(text, tree, captures: (match, value))
            copied = match.range.upperBound
        }
        return result + value[copied...]
    }

    /// Evaluates a text that contains XML, and escapes the values of its expressions.
    private mutating func xmlText(_ text: RuleText, _ tree: () -> Element?) -> [UInt8] {
        var result: [UInt8] = []
        for part in text.parts where result.count <= context.maximumBytes {
            if case .literal(let bytes) = part {
                result += bytes
            } else {
                var alone = text
                alone.parts = [part]
                for byte in self.text(alone, tree) { result += XMLWriter.escaped(byte) }
            }
        }
        return result
    }

    private mutating func replace(_ path: StanzaPath?, _ xml: [UInt8], _ tree: () -> Element?, _ state: inout RuleState)
    {
        if let path { return change(path, .xml(xml), tree, &state) }
        edit(tree, &state) { _, writer, _ in
            writer.verbatim(xml)
            return true
        }
    }

    private mutating func change(
        _ path: StanzaPath,
        _ change: PathEdit.Change,
        _ tree: () -> Element?,
        _ state: inout RuleState
    ) {
        let mostBytes = context.maximumBytes
        edit(tree, &state) { element, writer, content in
            var edit = PathEdit(change: change, mostBytes: mostBytes)
            edit.write(element, path, path.steps[...], inheriting: content, to: &writer)
            if case .text(let text) = change, !edit.isFound, path.steps.allSatisfy({ $0.name != nil }) {
                writer = XMLWriter(capacity: writer.bytes.count + 256)
                edit.create(element, path, path.steps[...], text, inheriting: content, to: &writer)
            }
            return edit.isChanged
        }
    }

    /// Edits the stanza and checks the result (RFC 6120 §8.1, XEP-0478). A stanza that fails the check is not changed.
    ///
    /// - Parameter body: Writes the edited stanza; returns false if nothing was changed.
    private mutating func edit(
        _ tree: () -> Element?,
        _ state: inout RuleState,
        _ body: (Element, inout XMLWriter, String) -> Bool
    ) {
        guard let element = element(tree) else { return refuseEdit("the element cannot be read") }
        let content = context.content.uri.description
        var writer = XMLWriter(capacity: item.bytes.count + 256)
        guard body(element, &writer, content) else { return }
        let bytes = writer.take()
        do throws(ItemChecker.Problem) {
            guard writer.replacedCharacters == 0 else {
                throw ItemChecker.Problem(message: "a character that XML 1.0 forbids")
            }
            // An edit that does not enlarge the stanza is allowed even if the stanza exceeds the receiver's limit.
            let limit = context.maximumBytes(item.direction)
            guard bytes.count <= max(limit, item.bytes.count) else {
                throw ItemChecker.Problem(message: "\(bytes.count) bytes, the receiver accepts at most \(limit)")
            }
            let edited = try state.checker.check(bytes, content: context.content)
            if let problem = problem(of: edited, was: element) { throw ItemChecker.Problem(message: problem) }
            if element.isEncrypted { remark(.opaque) }
            replace(by: edited, bytes)
        } catch {
            refuseEdit(error.message)
        }
    }

    /// Records that an edit was refused and the stanza is unchanged.
    private mutating func refuseEdit(_ why: String) {
        remark(.editRefused(why))
        hasRefusedEdit = true
    }

    /// Returns the reason why an edited element cannot replace the original; nil if it can.
    private func problem(of edited: Element, was element: Element) -> String? {
        guard edited.name == element.name, edited.isInNamespace(of: element) else {
            return "an edit must not turn <\(element.name)> into <\(edited.name)>"
        }
        guard item.head.kind != .nonza else { return nil }
        for name in ["from", "to"] as [StaticString] {
            guard let value = edited.attribute(name), value != element.attribute(name), Address(value).jid == nil else {
                continue
            }
            // The message omits the value, because it may be a secret that was copied from the stanza.
            return "the new value of \(name) is not a JID"
        }
        if namesSender { return problem(ofAddresses: edited, was: element) }
        guard item.direction == .send, let from = edited.attribute("from"), let jid = context.jid else { return nil }
        let (address, own) = (RuleAddress(from), RuleAddress(jid))
        guard address.full != own.full, address.full != own.bare else { return nil }
        return AddressFault.foreignSender(from, jid: jid).description
    }

    /// Checks the addresses of a stanza in a stream of servers or of a component: the stanza needs both, and the domain
    /// of `from` must be the initiating entity's (RFC 6120 §8.1.1.2, §8.1.2.2, XEP-0114).
    private func problem(ofAddresses edited: Element, was element: Element) -> String? {
        for name in ["from", "to"] as [StaticString] where edited.attribute(name) == nil {
            if element.attribute(name) != nil { return AddressFault.missing(attribute: "\(name)").description }
        }
        guard item.direction == .send, let from = edited.attribute("from"), let jid = context.jid,
            // The domain of the original `from` is also allowed, because one stream can carry several domains.
            let was = element.attribute("from")
        else { return nil }
        let (domain, own) = (RuleAddress(from).domain, RuleAddress(jid).domain)
        guard domain != own, domain != RuleAddress(was).domain else { return nil }
        return AddressFault.foreignDomain(from, domain: Address(jid).jid?.domain ?? jid).description
    }
}
