internal import Synchronization
internal import TapCore
internal import TapNetwork
internal import TapRecord

/// The held stanzas of a running proxy, read at intervals, and commands about them.
final class HeldStanzas: Sendable {
    /// A stanza of a session that a rule or a pause holds.
    struct Stanza: Sendable, Hashable {
        let session: UInt64
        /// The number of the stanza within the session.
        let number: UInt64
        /// `SEND` or `RECV`.
        let direction: String
        /// The stanza; it is not redacted, because the user has to judge it.
        let bytes: [UInt8]
        /// When it passes, in nanoseconds of the run.
        let deadline: Int64

        /// The beginning of the stanza, for a line.
        var text: String { String(decoding: bytes.prefix(400), as: UTF8.self) }
    }

    /// The interval at which stanzas are looked for.
    private static let pulse = Duration.milliseconds(250)
    private static let maximumStanzas = 100

    private let directory: SessionDirectory
    private let messages: TerminalMessages
    private let now: @Sendable () -> Int64
    private let state = Mutex<(items: [Stanza], version: Int)>(([], 0))

    /// - Parameter now: Returns the nanoseconds of the run.
    init(of directory: SessionDirectory, messages: TerminalMessages, now: @escaping @Sendable () -> Int64) {
        self.directory = directory
        self.messages = messages
        self.now = now
    }

    /// The stanzas, the oldest first.
    var items: [Stanza] { state.withLock { $0.items } }

    /// Changes with the stanzas, and each second while there are any.
    var version: Int {
        state.withLock { $0.items.isEmpty ? $0.version : $0.version &+ Int(now() / 1_000_000_000) }
    }

    /// Seconds until a stanza passes.
    func remaining(_ stanza: Stanza) -> Int64 { max(0, stanza.deadline &- now()) / 1_000_000_000 }

    /// Looks for stanzas until the task is cancelled.
    func watch() async {
        while (try? await Task.sleep(for: Self.pulse)) != nil { await look() }
    }

    private func look() async {
        let found = await directory.heldItems(limit: Self.maximumStanzas).map { session, item in
            Stanza(
                session: session,
                number: item.number,
                direction: "\(item.direction.name)".uppercased(),
                bytes: item.bytes,
                deadline: item.deadline
            )
        }
        .sorted { $0.deadline < $1.deadline }
        state.withLock { state in
            guard found != state.items else { return }
            state = (found, state.version &+ 1)
        }
    }

    /// Holds the next stanza of a session.
    func hold(_ session: UInt64) {
        perform { [directory, messages] in
            let pause = try StanzaPause(nil)
            if let obstacle = try await directory.pause(pause, nil, in: session) {
                messages.add("session \(session): no stanza can be held: \(obstacle)")
            } else {
                messages.add("session \(session): the next stanza is held for you")
            }
        }
    }

    /// Releases a stanza, and reports the result.
    func release(_ stanza: Stanza, _ release: HeldRelease) {
        perform { [directory, messages] in
            let name = "session \(stanza.session), held stanza \(stanza.number)"
            switch try await directory.release(stanza.number, release, in: stanza.session) {
            case .released: messages.add("\(name): \(Self.done(release))")
            case .notHeld: messages.add("\(name): it is not held any more")
            case .refused(let reason): messages.add("\(name) stays held, its edit was refused: \(reason)")
            }
        }
    }

    private static func done(_ release: HeldRelease) -> String {
        switch release {
        case .pass: "passed"
        case .drop: "dropped"
        case .replace: "edited and passed"
        }
    }

    private func perform(_ command: @escaping @Sendable () async throws -> Void) {
        Task { [messages] in
            do {
                try await command()
                await look()
            } catch let error as SessionDirectory.NoSuchSession {
                messages.add("session \(error.number) has ended")
            } catch { messages.add("\(error)") }
        }
    }
}
