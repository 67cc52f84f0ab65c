internal import TapRecord
package import XMPPCore

/// Plays a ``Script`` step by step.
///
/// Sans-IO: events are passed with the time in nanoseconds of a monotonic clock, ``next()`` returns commands, and
/// ``tick(at:)`` must be called at ``deadline``.
///
/// A step that sends, connects or disconnects starts after the server has handled everything that other clients sent
/// before. To find out, each of these clients sends a ping, which is hidden from the script, and waits for the answer.
///
/// Received stanzas are kept until a step receives them. Stanzas of one kind and sender must be received in order. A
/// step may receive a stanza before earlier stanzas of another kind or sender (RFC 6120 §10.1); later steps must then
/// receive the earlier ones.
///
/// When a step sends a stanza and the step before did not send, all stanzas that no step has received are set aside,
/// because scansion ignores them: later steps may receive them in any order, but need not. Stanzas that a server may
/// also omit are set aside too.
///
/// With the tag ``optionalRequests``, a step may expect a request that a server may also omit: if the request does not
/// arrive, this step and the step that answers the request are skipped. With the tag ``optionalStoredData``, messages
/// with data that the server had stored before may be missing as well, and answers with stored data may contain other
/// data. Stanzas that are left at the end are ignored.
package struct ScriptPlay: Sendable {
    /// The time limits of steps.
    package struct Settings: Sendable, Hashable {
        /// Time limit for a stanza, in nanoseconds; a login gets four times as much (default: 10 s).
        package var wait: Int64 = 10_000_000_000
        /// Time during which `receives: nothing` must receive nothing, in nanoseconds (default: 500 ms).
        package var quiet: Int64 = 500_000_000

        /// Creates settings with the defaults.
        package init() {}
    }

    /// A command for a character, given by its index.
    package enum Command: Sendable, Hashable {
        /// Connect and log in; answered by ``ScriptPlay/bound(_:to:at:)`` or ``ScriptPlay/closed(_:_:at:)``.
        case connect(Int)
        /// Send these bytes.
        case send(Int, [UInt8])
        /// Close the stream; answered by ``ScriptPlay/closed(_:_:at:)``.
        case disconnect(Int)
    }

    /// The result of a script.
    package enum Outcome: Sendable, Hashable {
        /// Every step succeeded.
        case passed
        /// A step failed.
        case failed(Failure)
    }

    /// The step that failed, and why.
    package struct Failure: Sendable, Hashable {
        /// The cause of a failure.
        package enum Cause: Sendable, Hashable {
            /// The server behaves differently than the script expects.
            case behaviour
            /// A client could not log in.
            case login
            /// The server could not be reached.
            case network
        }

        /// The line of the step, from 1.
        package var line: Int
        /// The step, human-readable: `Romeo receives`.
        package var step: String
        /// The reason, as a human-readable clause.
        package var reason: String
        /// The expected stanza as written in the script; nil if the step expects none.
        package var expected: String?
        /// The received stanza without its secrets; nil if none was received.
        package var received: String?
        /// The first difference between both stanzas; nil if one is missing.
        package var difference: ScriptDifference?
        /// The cause.
        package var cause: Cause
    }

    private struct Received: Sendable {
        let element: Element
        let bytes: [UInt8]
        /// Whether the server may also omit the stanza.
        let isOptional: Bool
        /// The first step that received a later stanza instead.
        var passedBy: Int?

        /// Returns whether this stanza must be received before the later one: both have the same kind and sender.
        func precedes(_ later: Received) -> Bool {
            element.name == later.element.name && element.attribute("from") == later.element.attribute("from")
        }
    }

    private enum Connection: Sendable {
        case closed(String?), connecting, bound, leaving
    }

    /// The tag of scripts whose requests of the server are optional: `## server-requests: optional`.
    package static let optionalRequests = Script.Tag("server-requests: optional")

    /// The tag of scripts that pass regardless of the data that the server has stored before: `## stored-data:
    /// optional`.
    ///
    /// Messages that may contain stored data are set aside when they arrive. A step that expects a message with stored
    /// data is skipped if it does not arrive. Of an answer with stored data, only the stanza element is compared,
    /// without its children.
    package static let optionalStoredData = Script.Tag("stored-data: optional")

    private let script: Script
    private let settings: Settings
    private let hasOptionalRequests: Bool
    /// Finds stanzas with stored data; nil if the script does not have the tag ``optionalStoredData``.
    private var stored: StoredStanzas?
    /// The requests that the server did not send, as the names under which their ids would have been captured.
    private var omittedRequests: Set<String> = []
    private let redactor = ReportRedactor()
    private let rules = NoiseRules()
    /// The optional stanzas of each character.
    private var options: [OptionalStanzas]
    private var values: ScriptValues
    private var connections: [Connection]
    /// For each character, the received stanzas that no step has matched yet.
    private var received: [ArraySlice<Received>]
    /// For each character, stanzas that arrived earlier: later steps may match them, but do not have to.
    private var setAside: [[Received]]
    /// Clients that have sent stanzas which the server may not have handled yet.
    private var unsettled: Set<Int> = []
    /// For each client, the id of its ping that has not been answered.
    private var pings: [Int: String] = [:]
    /// How far the play is in setting aside all stanzas that no step has received. The number is the index of the step
    /// that begins after this.
    private var pingCount = 0
    /// The progress of setting aside all stanzas that no step has received, with the step before which this happens.
    private enum SetAsideProgress: Sendable, Hashable {
        case began(Int), over(Int)
    }

    private var setAsideProgress: SetAsideProgress?
    /// Whether a client has sent a stanza since stanzas were last set aside, so that more may have arrived.
    private var hasSent = false
    /// The step for which all clients have sent pings because no received stanza matched.
    private var checkedPosition: Int?
    /// The time at which the wait for the answers to pings ends; nil if the script does not wait for answers.
    private var pingDeadline: Int64?
    /// Whether the last connection attempt failed to reach the server.
    private var isUnreachable = false
    private var commands: ArraySlice<Command> = []
    /// Index of the current step.
    package private(set) var position = 0
    /// The time at which the current step times out or has waited long enough; nil if it does not wait.
    package var deadline: Int64? { pingDeadline ?? stepDeadline }
    private var stepDeadline: Int64?
    /// The result; nil while the script runs.
    package private(set) var outcome: Outcome?

    /// Creates a play that has not started.
    ///
    /// - Parameter accounts: The bare JIDs with which the characters log in, in order; nil for those in the script.
    package init(_ script: Script, accounts: [String]? = nil, settings: Settings = Settings()) {
        let values = ScriptValues(accounts: accounts ?? script.characters.map(\.jid))
        var script = script
        if script.has(Self.optionalStoredData) {
            stored = StoredStanzas()
            for (index, step) in script.steps.enumerated() {
                guard case .receives(var expected) = step.action, expected.name == "iq",
                    expected.outline(values).map({ StanzaForm($0).hasStoredData }) == true
                else { continue }
                expected.children = []
                script.steps[index].action = .receives(expected)
            }
        }
        self.script = script
        self.settings = settings
        self.values = values
        hasOptionalRequests = script.has(Self.optionalRequests)
        connections = script.characters.map { _ in .closed(nil) }
        received = script.characters.map { _ in [] }
        setAside = script.characters.map { _ in [] }
        options = script.characters.map { [rules] _ in OptionalStanzas(rules: rules) }
    }

    /// Returns the next command; nil if there is none until the next event.
    package mutating func next() -> Command? { commands.popFirst() }

    // MARK: Events

    /// Starts the script.
    package mutating func start(at now: Int64) { advance(at: now) }

    /// Handles a character's login with the bound full JID.
    package mutating func bound(_ character: Int, to jid: String, at now: Int64) {
        guard connections.indices.contains(character) else { return }
        connections[character] = .bound
        values.resources[character] = jid
        advance(at: now)
    }

    /// Handles a received stanza. Pings from the server are answered at once and not passed to steps.
    package mutating func receive(_ element: Element, _ bytes: [UInt8], for character: Int, at now: Int64) {
        guard received.indices.contains(character) else { return }
        if element.matches("iq", .client), element.attribute("type") == "get", element.child("ping", .ping) != nil,
            Self.isServer(element.attribute("from"), of: values.accounts[character])
        {
            let (id, from) = (element.attribute("id"), element.attribute("from"))
            return commands.append(
                .send(character, XMLWriter.bytes { $0.element("iq", ["type": "result", "id": id, "to": from]) })
            )
        }
        if element.matches("iq", .client), let id = element.attribute("id"), pings[character] == id {
            pings[character] = nil
        } else {
            let roles = OptionalStanzas.Roles(isPlayed: values.resources.contains)
            let option = options[character].option(StanzaForm(element), roles)
            let item = Received(element: element, bytes: bytes, isOptional: option?.isRepeatable == true)
            if stored?.mayContain(element) == true {
                setAside[character].append(item)
            } else {
                received[character].append(item)
            }
        }
        advance(at: now)
    }

    /// Returns whether an address is that of the account's server: its domain, the bare account, or none.
    static func isServer(_ from: String?, of account: String) -> Bool {
        from == nil || from == account || from == account.split(separator: "@").last.map(String.init)
    }

    /// Handles the end of a character's connection, or a failed connection attempt.
    ///
    /// - Parameters:
    ///   - reason: The reason, as a clause.
    ///   - isUnreachable: Whether no connection to the server could be established.
    package mutating func closed(_ character: Int, _ reason: String, isUnreachable: Bool = false, at now: Int64) {
        guard connections.indices.contains(character) else { return }
        pings[character] = nil
        unsettled.remove(character)
        self.isUnreachable = isUnreachable
        if case .leaving = connections[character] {
            connections[character] = .closed(nil)
        } else {
            connections[character] = .closed(reason)
        }
        advance(at: now)
    }

    /// Handles the ``deadline``.
    package mutating func tick(at now: Int64) { advance(at: now) }

    // MARK: Steps

    private enum Progress {
        case done, waits(Int64), failed(String, received: [UInt8]? = nil, ScriptDifference? = nil)
    }

    private mutating func advance(at now: Int64) {
        while outcome == nil {
            guard script.steps.indices.contains(position) else {
                return failPassed() ? () : end(.passed)
            }
            let step = script.steps[position]
            guard isSettled(step) else {
                guard outcome == nil else { return }
                let end = pingDeadline ?? now &+ settings.wait
                pingDeadline = end
                guard now >= end else { return }
                // A server may leave pings unanswered, so the script continues without the answers.
                pings = [:]
                continue
            }
            pingDeadline = nil
            switch progress(step, at: now) {
            case .done:
                position += 1
                stepDeadline = nil
            case .waits(let time):
                let end = stepDeadline ?? now &+ time
                stepDeadline = end
                guard now >= end else { return }
                expire(step)
            case .failed(let reason, let received, let difference): fail(step, reason, received, difference)
            }
        }
    }

    private mutating func progress(_ step: Script.Step, at now: Int64) -> Progress {
        let who = step.character
        switch (step.action, connections[who]) {
        case (.connects, .bound): return .done
        // A login takes several round trips.
        case (.connects, .connecting): return .waits(loginTime)
        case (.connects, .closed(let reason?)) where stepDeadline != nil: return .failed(reason)
        case (.connects, .leaving): return .waits(settings.wait)
        case (.connects, .closed):
            connections[who] = .connecting
            (received[who], setAside[who]) = ([], [])
            commands.append(.connect(who))
            return .waits(loginTime)
        case (.disconnects, .bound):
            connections[who] = .leaving
            commands.append(.disconnect(who))
            return .waits(settings.wait)
        case (.disconnects, .leaving): return .waits(settings.wait)
        case (.disconnects, _): return .done
        case (.sends(let text), .bound):
            guard let bytes = withLiveID(text.bytes(values, isXML: true), who) else { return .done }
            if stored != nil { follow(bytes, of: who) }
            commands.append(.send(who, bytes))
            unsettled.insert(who)
            hasSent = true
            return .done
        case (.sends, .closed(let reason?)): return .failed("the connection ended: \(reason)")
        // Scripts may send stanzas, such as unavailable presence, after `disconnects`.
        case (.sends, _): return .done
        case (.receives(var expected), let connection):
            let request = hasOptionalRequests ? optionalRequest(expected).map { Self.request($0, who) } : nil
            if let request {
                // The id differs in each run, so it is captured for the answer.
                expected.capture("id", as: request)
                omittedRequests.remove(request)
            }
            if receive(expected, who) { return .done }
            let first = received[who].first
            let isAside = setAside[who].contains { expected.matches($0.element, values) }
            let isStored = isStored(expected, who)
            if first != nil || isAside || isStored || request != nil {
                // A stanza that the server has already sent arrives before the answers to pings that are sent now. So
                // the clients send pings once, and the step continues after all answers.
                guard checkedPosition == position else {
                    checkedPosition = position
                    let bound = connections.indices.filter { if case .bound = connections[$0] { true } else { false } }
                    return sendPings(Set(bound)) ? progress(step, at: now) : .waits(settings.wait)
                }
                if receiveSetAside(expected, who) { return .done }
                if let request {
                    omittedRequests.insert(request)
                    return .done
                }
                if isStored { return .done }
            }
            if let first, let difference = expected.difference(first.element, &values) {
                return .failed("\(difference)", received: first.bytes, difference)
            }
            guard case .closed(let reason) = connection else { return .waits(settings.wait) }
            return .failed(reason.map { "the connection ended: \($0)" } ?? "the client has disconnected")
        case (.receivesNothing, _):
            guard let item = received[who].first else { return .waits(settings.quiet) }
            return .failed("expected nothing, received <\(item.element.name)/>", received: item.bytes)
        }
    }

    /// Returns whether the server has handled everything on which a step depends. If not, sends pings.
    private mutating func isSettled(_ step: Script.Step) -> Bool {
        guard pings.isEmpty else { return false }
        if case .receives = step.action { return true }
        guard sendPings(unsettled.subtracting([step.character])) else { return false }
        guard case .sends = step.action, hasSent, setAsideProgress != .over(position) else { return true }
        if case .sends = script.steps[position - 1].action { return true }
        guard setAsideProgress == .began(position) else {
            // Answers to earlier steps have arrived when all clients have the answers to later pings.
            setAsideProgress = .began(position)
            let bound = connections.indices.filter { if case .bound = connections[$0] { true } else { false } }
            return sendPings(Set(bound)) && isSettled(step)
        }
        guard !failPassed() else { return false }
        for character in received.indices {
            setAside[character] += received[character]
            received[character] = []
        }
        setAsideProgress = .over(position)
        hasSent = false
        return true
    }

    /// Sends a ping from each of the clients that is logged in.
    ///
    /// - Returns: Whether all pings have been answered.
    private mutating func sendPings(_ clients: Set<Int>) -> Bool {
        for client in clients.sorted() {
            guard case .bound = connections[client] else { continue }
            pingCount += 1
            let id = "xmpptap-settled-\(pingCount)"
            pings[client] = id
            let server = values.accounts[client].split(separator: "@").last.map(String.init)
            let ping = XMLWriter.bytes {
                $0.element("iq", ["type": "get", "id": id, "to": server]) { $0.element("ping", .ping) }
            }
            commands.append(.send(client, ping))
        }
        unsettled.subtract(clients)
        return pings.isEmpty
    }

    /// Receives the first stanza that matches. Earlier stanzas that the server may also omit are set aside.
    ///
    /// - Returns: Whether a stanza was received.
    private mutating func receive(_ expected: ExpectedElement, _ character: Int) -> Bool {
        var index = received[character].startIndex
        while index < received[character].endIndex {
            let item = received[character][index]
            let earlier = received[character][..<index]
            if expected.difference(item.element, &values) == nil {
                guard !earlier.contains(where: { $0.precedes(item) }) else { return false }
                for passed in earlier.indices where received[character][passed].passedBy == nil {
                    received[character][passed].passedBy = position
                }
                received[character].remove(at: index)
                return true
            }
            if item.isOptional {
                setAside[character].append(item)
                received[character].remove(at: index)
                continue
            }
            index += 1
        }
        return false
    }

    /// Returns the id of an expected request that the server may also omit; nil for other stanzas.
    private func optionalRequest(_ expected: ExpectedElement) -> String? {
        guard expected.name == "iq", let outline = expected.outline(values), rules.occurrences(of: outline).isAnyNumber
        else {
            return nil
        }
        return outline.attribute("id")
    }

    /// Returns the name under which the id of a request to a character is captured.
    private static func request(_ id: String, _ character: Int) -> String { "\(character) \(id)" }

    /// Returns stanzas that a client sends, with the live id if they answer an optional request; nil if the server did
    /// not send the request.
    private func withLiveID(_ bytes: [UInt8], _ character: Int) -> [UInt8]? {
        guard hasOptionalRequests,
            let stanza = try? StanzaParser().parse(bytes.span, root: StanzaForm.clientDeclarations),
            stanza.attribute("type") == "result" || stanza.attribute("type") == "error", let id = stanza.attribute("id")
        else { return bytes }
        let request = Self.request(id, character)
        guard !omittedRequests.contains(request) else { return nil }
        guard let live = values.captures[request], live != id else { return bytes }
        return XMLWriter.bytes {
            $0.element(stanza, inheriting: Namespace.client.uri.description, setting: ["id": live])
        }
    }

    /// Returns whether an expected message contains data that the server had stored before.
    private func isStored(_ expected: ExpectedElement, _ character: Int) -> Bool {
        guard let stored, expected.name == "message", let outline = expected.outline(values) else { return false }
        return stored.contains(outline, of: values.accounts[character])
    }

    /// Updates the stored data for stanzas that a client sends. Removes stanzas that were set aside if the sent stanzas
    /// cannot have caused them: messages of an earlier run with the same ids, and earlier events of the same nodes.
    private mutating func follow(_ bytes: [UInt8], of character: Int) {
        let stream = Array("<stream>".utf8) + bytes + Array("</stream>".utf8)
        let stanzas = try? StanzaParser().parse(stream.span, root: StanzaForm.clientDeclarations).children
        for stanza in stanzas ?? [] {
            let old = stored
            stored?.follow(stanza, of: values.accounts[character])
            let id = stanza.stanzaKind == .message ? stanza.attribute("id") : nil
            for other in setAside.indices {
                setAside[other].removeAll { item in
                    let account = values.accounts[other]
                    guard old?.contains(item.element, of: account) == true else { return false }
                    return id != nil && item.element.attribute("id") == id
                        || stored?.contains(item.element, of: account) == false
                }
            }
        }
    }

    /// Fails the first step that received a stanza although an earlier one was waiting, if no step has received the
    /// earlier one since.
    ///
    /// - Returns: Whether a step failed.
    private mutating func failPassed() -> Bool {
        let passed = received.joined().compactMap { item in item.passedBy.map { (step: $0, item) } }
        guard let (step, item) = passed.min(by: { $0.step < $1.step }) else { return false }
        guard case .receives(let expected) = script.steps[step].action else { return false }
        let difference = expected.difference(item.element, &values)
        fail(script.steps[step], difference.map { "\($0)" } ?? "a stanza that no step receives", item.bytes, difference)
        return true
    }

    /// Receives the first matching stanza among those that were set aside.
    ///
    /// - Returns: Whether a stanza matched.
    private mutating func receiveSetAside(_ expected: ExpectedElement, _ character: Int) -> Bool {
        for (index, item) in setAside[character].enumerated()
        where expected.difference(item.element, &values) == nil {
            setAside[character].remove(at: index)
            return true
        }
        return false
    }

    /// Handles the deadline of a step.
    private mutating func expire(_ step: Script.Step) {
        switch step.action {
        case .receivesNothing:
            position += 1
            stepDeadline = nil
        case .disconnects:
            // The server need not close its stream in response.
            connections[step.character] = .closed(nil)
        case .connects: fail(step, "no login within \(LineBuffer.duration(loginTime))")
        default: fail(step, "nothing received within \(LineBuffer.duration(settings.wait))")
        }
    }

    private var loginTime: Int64 { settings.wait &* 4 }

    private mutating func fail(
        _ step: Script.Step,
        _ reason: String,
        _ received: [UInt8]? = nil,
        _ difference: ScriptDifference? = nil
    ) {
        let text = received.map { String(decoding: $0, as: UTF8.self) }
        let redacted = text.flatMap(redactor.redacted)
        var (difference, reason) = (difference, reason)
        if let redacted, var found = difference {
            found.received = redacted.value(found.received)
            (difference, reason) = (found, "\(found)")
        }
        var cause = Failure.Cause.behaviour
        var verb = "receives"
        switch step.action {
        case .connects: (verb, cause) = ("connects", isUnreachable ? .network : .login)
        case .disconnects: verb = "disconnects"
        case .sends: verb = "sends"
        case .receives, .receivesNothing: break
        }
        end(
            .failed(
                Failure(
                    line: step.line,
                    step: "\(script.characters[step.character].name) \(verb)",
                    reason: reason,
                    expected: step.expected,
                    received: redacted?.text ?? text,
                    difference: difference,
                    cause: cause
                )
            )
        )
    }

    private mutating func end(_ outcome: Outcome) {
        self.outcome = outcome
        (stepDeadline, pingDeadline) = (nil, nil)
        for (index, connection) in connections.enumerated() {
            switch connection {
            case .bound, .connecting: commands.append(.disconnect(index))
            case .closed, .leaving: break
            }
        }
    }
}
