internal import Glibc
internal import Synchronization
internal import TapCapture
internal import TapCore

/// Shows an inspector on the terminal: waits for keys, draws what has changed, and continues searches in the meantime.
///
/// It runs on one thread, which nothing else waits for. New records are only looked at when a screen is drawn.
final class TerminalLoop {
    /// How a loop has ended.
    enum Ending: Sendable {
        /// The user has quit, or a signal has ended the program.
        case quit
        /// Another thread has ended the loop.
        case stopped
        /// The terminal is gone.
        case hangUp
        case failed(String)
    }

    /// The shortest time between two screens that no key has asked for.
    private static let frame = Duration.milliseconds(50)
    /// The shortest time between two screens after keys.
    private static let keyFrame = Duration.milliseconds(15)
    /// How long the rest of an escape sequence is waited for.
    private static let escapeTime = Duration.milliseconds(50)
    /// The longest time without a look for news, such as the end of a message.
    private static let idle = Duration.milliseconds(100)
    /// Maximum number of bytes that are written at once, so that a slow terminal does not block.
    private static let piece = 1024

    private var inspector: Inspector
    private let held: HeldStanzas?
    private let messages: TerminalMessages
    private let isLive: Bool
    private let notices: Int32
    private let stopped: StopFlag
    private var decoder = KeyDecoder()
    private var update: ScreenUpdate
    private let isASCII = !Console.hasUTF8
    /// The screen on the terminal; nil if unknown.
    private var shown: Screen?
    private var lastFrame = ContinuousClock.now - .seconds(1)
    private var isDirty = true
    /// Whether a key has changed something that is not drawn yet.
    private var isPrompt = false
    /// When the incomplete escape sequence has begun.
    private var sequenceBegan: ContinuousClock.Instant?
    private var ending: Ending?

    /// Whether another thread wants the loop to end.
    final class StopFlag: Sendable {
        private let flag = Atomic(false)

        var isSet: Bool { flag.load(ordering: .relaxed) }

        /// Ends the loop soon.
        func set() {
            flag.store(true, ordering: .relaxed)
            TerminalMode.send(.woken)
        }
    }

    /// - Parameters:
    ///   - notices: The descriptor of ``TerminalMode/openPipe()``.
    ///   - stopped: Ends the loop.
    init(
        _ inspector: Inspector,
        _ held: HeldStanzas?,
        _ messages: TerminalMessages,
        isLive: Bool,
        notices: Int32,
        stopped: StopFlag
    ) {
        self.inspector = inspector
        self.held = held
        self.messages = messages
        self.isLive = isLive
        self.notices = notices
        self.stopped = stopped
        update = ScreenUpdate(isColoured: Surroundings.current.wantsColour)
    }

    /// Shows the inspector until it ends.
    func run() -> Ending {
        let error = TerminalMode.enter()
        guard error == 0 else {
            return .failed("the mode of the terminal cannot be changed: \(String(cString: strerror(error)))")
        }
        defer { TerminalMode.restore() }
        var hasMore = true
        while ending == nil, !stopped.isSet {
            wait(hasMore ? .zero : timeout)
            guard ending == nil, !stopped.isSet else { break }
            let hadMore = hasMore
            hasMore = inspector.advance()
            if hadMore || hasMore || inspector.hasNews() { isDirty = true }
            if isDirty, untilFrame <= .zero { draw() }
        }
        return ending ?? .stopped
    }

    /// The time until a screen may be drawn.
    private var untilFrame: Duration {
        (isPrompt ? Self.keyFrame : Self.frame) - (ContinuousClock.now - lastFrame)
    }

    /// How long nothing has to be done unless a key is pressed.
    private var timeout: Duration {
        var time = isLive ? Self.frame : Self.idle
        if isDirty { time = min(time, max(.zero, untilFrame)) }
        if let sequenceBegan {
            time = min(time, max(.zero, Self.escapeTime - (ContinuousClock.now - sequenceBegan)))
        }
        return time
    }

    // MARK: Input

    /// Waits for keys and notices, and handles them.
    private func wait(_ timeout: Duration) {
        var requests = [
            pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0),
            pollfd(fd: notices, events: Int16(POLLIN), revents: 0),
        ]
        let count = poll(&requests, 2, Int32(clamping: timeout.milliseconds))
        if count <= 0 || requests[0].revents == 0, let sequenceBegan,
            ContinuousClock.now - sequenceBegan >= Self.escapeTime
        {
            self.sequenceBegan = nil
            handle(decoder.endOfTime())
        }
        guard count > 0 else { return }
        if requests[1].revents != 0 { readNotices() }
        guard requests[0].revents != 0, ending == nil else { return }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let got = read(STDIN_FILENO, &bytes, bytes.count)
        if got > 0 {
            let keys = decoder.decode(bytes.prefix(got))
            sequenceBegan = decoder.isWaiting ? .now : nil
            handle(keys)
        } else if got == 0 || errno != EINTR && errno != EAGAIN {
            ending = .hangUp
        }
    }

    private func readNotices() {
        var bytes = [UInt8](repeating: 0, count: 256)
        let got = read(notices, &bytes, bytes.count)
        for byte in bytes.prefix(max(0, got)) {
            switch TerminalMode.Notice(rawValue: byte) {
            case .resized: isDirty = true
            case .suspended: suspend()
            case .continued:
                // Another program may have changed the mode in the meantime.
                _ = TerminalMode.enter()
                redraw()
            case .ended: ending = .quit
            case .woken, nil: break
            }
        }
    }

    private func handle(_ keys: [Key]) {
        for key in keys where ending == nil {
            isDirty = true
            isPrompt = true
            switch inspector.handle(key) {
            case .quit: ending = .quit
            case .suspend: suspend()
            case .redraw: redraw()
            case .edit(let stanza): edit(stanza)
            case nil: break
            }
        }
    }

    private func suspend() {
        TerminalMode.restore()
        TerminalMode.suspend(notices)
        _ = TerminalMode.enter()
        redraw()
    }

    private func redraw() {
        shown = nil
        isDirty = true
    }

    // MARK: Held stanzas

    /// Edits a held stanza with the user's editor, and relays the result.
    private func edit(_ stanza: HeldStanzas.Stanza) {
        TerminalMode.restore()
        let outcome = StanzaEditor.edit(stanza.bytes)
        _ = TerminalMode.enter()
        redraw()
        switch outcome {
        case .changed(let bytes): held?.release(stanza, .replace(bytes))
        case .unchanged: messages.add("the stanza was not changed; it stays held (P passes it)")
        case .failed(let reason): messages.add("\(reason); the stanza stays held")
        }
    }

    // MARK: Output

    private func draw() {
        let size = TerminalMode.size
        var screen = Screen(width: size.columns, height: size.rows, isASCII: isASCII)
        inspector.draw(to: &screen)
        let bytes = update.bytes(from: shown, to: screen)
        shown = screen
        isDirty = false
        isPrompt = false
        lastFrame = .now
        write(bytes)
    }

    /// Writes to the terminal as fast as it reads.
    private func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty, ending == nil, !stopped.isSet {
            var requests = [
                pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0),
                pollfd(fd: notices, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&requests, 2, 1000) > 0 else { continue }
            if requests[1].revents != 0 { readNotices() }
            if requests[0].revents & Int16(POLLHUP | POLLERR | POLLNVAL) != 0 {
                ending = .hangUp
                return
            }
            guard requests[0].revents & Int16(POLLOUT) != 0 else { continue }
            let written = rest.prefix(Self.piece).withUnsafeBytes {
                Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count)
            }
            if written > 0 {
                rest = rest.dropFirst(written)
            } else if written < 0, errno != EINTR, errno != EAGAIN {
                ending = .hangUp
                return
            }
        }
    }
}

extension Duration {
    /// The whole milliseconds, rounded up.
    fileprivate var milliseconds: Int {
        let (seconds, fraction) = components
        return Int(clamping: seconds &* 1000 &+ (fraction &+ 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}
