internal import TapRecord
public import XMPPCore

/// Plays a ``Script``: one step after the other, as its clients' connections allow.
///
/// Sans-IO: what happened goes in with the time, in nanoseconds of any clock that does not go back; what is to be done comes
/// out of ``next()``; call ``tick(at:)`` at ``deadline``. As with scansion, what comes for a client waits until a step
/// receives it, and what is left at the end does not count.
public struct ScriptPlay: Sendable {
    /// How long steps take.
    public struct Settings: Sendable, Hashable {
        /// Nanoseconds that a login or a stanza may take. Default 10 s.
        public var wait: Int64 = 10_000_000_000
        /// Nanoseconds in which `receives: nothing` gets nothing. Default 500 ms.
        public var quiet: Int64 = 500_000_000

        /// The defaults.
        public init() {}
    }

    /// What is to be done for a character, which is given by its index.
    public enum Command: Sendable, Hashable {
        /// Connect and log in; ``ScriptPlay/bound(_:to:at:)`` or ``ScriptPlay/closed(_:_:at:)`` follows.
        case connect(Int)
        /// Send these bytes.
        case send(Int, [UInt8])
        /// Close the stream; ``ScriptPlay/closed(_:_:at:)`` follows.
        case disconnect(Int)
    }

    /// How the script ended.
    public enum Outcome: Sendable, Hashable {
        /// Every step was as the script has it.
        case passed
        /// A step was not.
        case failed(Failure)
    }

    /// The step at which a script failed.
    public struct Failure: Sendable, Hashable {
        /// What is at fault.
        public enum Cause: Sendable, Hashable {
            /// The server does something else than the script expects.
            case behaviour
            /// A client could not log in.
            case login
            /// The server cannot be reached.
            case network
        }

        /// Its line in the script, from 1.
        public var line: Int
        /// What the step does: `Romeo receives`.
        public var step: String
        /// What was wrong, as a clause for people.
        public var reason: String
        /// The stanza that the step expects, as it stands in the script; nil where it expects none.
        public var expected: String?
        /// The stanza that came instead, as it was received, without its secrets; nil where none did.
        public var received: String?
        /// The first place at which the two differ; nil where one of them is missing.
        public var difference: ScriptDifference?
        /// What is at fault.
        public var cause: Cause
    }

    private enum Connection: Sendable {
        case closed(String?), connecting, bound, leaving
    }

    private let script: Script
    private let settings: Settings
    private let redactor = ReportRedactor()
    private var values: ScriptValues
    private var connections: [Connection]
    /// What has come for each character and no step has received.
    private var received: [ArraySlice<(element: Element, bytes: [UInt8])>]
    /// The last connection could not be made.
    private var isUnreachable = false
    private var commands: ArraySlice<Command> = []
    /// Index of the step that is under way.
    public private(set) var position = 0
    /// When the step that is under way has lasted too long, or long enough; nil while none waits.
    public private(set) var deadline: Int64?
    /// How it ended; nil before that.
    public private(set) var outcome: Outcome?

    /// A script that has not begun.
    ///
    /// - Parameter accounts: The bare JIDs with which the characters log in, in their order; nil for those of the script.
    public init(_ script: Script, accounts: [String]? = nil, settings: Settings = Settings()) {
        self.script = script
        self.settings = settings
        values = ScriptValues(accounts: accounts ?? script.characters.map(\.jid))
        connections = script.characters.map { _ in .closed(nil) }
        received = script.characters.map { _ in [] }
    }

    /// The next thing to do; nil when there is nothing until something happens.
    public mutating func next() -> Command? { commands.popFirst() }

    // MARK: What happens

    /// Begins.
    public mutating func start(at now: Int64) { advance(at: now) }

    /// A character has logged in and bound a resource.
    public mutating func bound(_ character: Int, to jid: String, at now: Int64) {
        guard connections.indices.contains(character) else { return }
        connections[character] = .bound
        values.resources[character] = jid
        advance(at: now)
    }

    /// A stanza has come for a character. Pings of the server are answered at once: no step receives them.
    public mutating func receive(_ element: Element, _ bytes: [UInt8], for character: Int, at now: Int64) {
        guard received.indices.contains(character) else { return }
        if element.matches("iq", .client), element.attribute("type") == "get", element.child("ping", .ping) != nil,
            Self.isServer(element.attribute("from"), of: values.accounts[character])
        {
            let (id, from) = (element.attribute("id"), element.attribute("from"))
            return commands.append(
                .send(character, XMLWriter.bytes { $0.element("iq", ["type": "result", "id": id, "to": from]) })
            )
        }
        received[character].append((element, bytes))
        advance(at: now)
    }

    /// Whether an address is that of an account's server: its domain, the account itself, or none.
    static func isServer(_ from: String?, of account: String) -> Bool {
        from == nil || from == account || from == account.split(separator: "@").last.map(String.init)
    }

    /// A character's connection has ended, or could not be made.
    ///
    /// - Parameters:
    ///   - reason: Why, as a clause.
    ///   - isUnreachable: There was no connection to the server.
    public mutating func closed(_ character: Int, _ reason: String, isUnreachable: Bool = false, at now: Int64) {
        guard connections.indices.contains(character) else { return }
        self.isUnreachable = isUnreachable
        if case .leaving = connections[character] {
            connections[character] = .closed(nil)
        } else {
            connections[character] = .closed(reason)
        }
        advance(at: now)
    }

    /// The ``deadline`` is there.
    public mutating func tick(at now: Int64) { advance(at: now) }

    // MARK: Steps

    private enum Progress {
        case done, waits(Int64), failed(String, received: [UInt8]? = nil, ScriptDifference? = nil)
    }

    private mutating func advance(at now: Int64) {
        while outcome == nil {
            guard script.steps.indices.contains(position) else { return end(.passed) }
            let step = script.steps[position]
            switch progress(step, at: now) {
            case .done:
                position += 1
                deadline = nil
            case .waits(let time):
                let end = deadline ?? now &+ time
                deadline = end
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
        // A login has several steps, which take their time each.
        case (.connects, .connecting): return .waits(loginTime)
        case (.connects, .closed(let reason?)) where deadline != nil: return .failed(reason)
        case (.connects, .leaving): return .waits(settings.wait)
        case (.connects, .closed):
            connections[who] = .connecting
            received[who] = []
            commands.append(.connect(who))
            return .waits(loginTime)
        case (.disconnects, .bound):
            connections[who] = .leaving
            commands.append(.disconnect(who))
            return .waits(settings.wait)
        case (.disconnects, .leaving): return .waits(settings.wait)
        case (.disconnects, _): return .done
        case (.sends(let text), .bound):
            commands.append(.send(who, text.bytes(values, isXML: true)))
            return .done
        case (.sends, .closed(let reason?)): return .failed("the connection ended: \(reason)")
        // Scripts say goodbye after they have left.
        case (.sends, _): return .done
        case (.receives(let expected), let connection):
            guard let item = received[who].popFirst() else {
                guard case .closed(let reason) = connection else { return .waits(settings.wait) }
                return .failed(reason.map { "the connection ended: \($0)" } ?? "the client has disconnected")
            }
            guard let difference = expected.difference(item.element, &values) else { return .done }
            return .failed("\(difference)", received: item.bytes, difference)
        case (.receivesNothing, _):
            guard let item = received[who].first else { return .waits(settings.quiet) }
            return .failed("expected nothing, received <\(item.element.name)/>", received: item.bytes)
        }
    }

    /// A step has waited long enough.
    private mutating func expire(_ step: Script.Step) {
        switch step.action {
        case .receivesNothing:
            position += 1
            deadline = nil
        case .disconnects:
            // The server need not answer the end of a stream.
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
        deadline = nil
        for (index, connection) in connections.enumerated() {
            switch connection {
            case .bound, .connecting: commands.append(.disconnect(index))
            case .closed, .leaving: break
            }
        }
    }
}
