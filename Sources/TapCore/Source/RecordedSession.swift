internal import TapDiagnosis
internal import TapRecord
internal import XMPPCore

/// A session that the current code repeats from a recording.
///
/// - An item that a peer sent is read again, as it was recorded. Its secrets are placeholders: the SASL contents are
///   the recording's, and so are the item's place on the wire and the actions on it.
/// - An item that this program sent is passed on as it was recorded. It is also read if it acted for a peer: the
///   request for TLS, and the answers to a client whose login was ended here.
/// - Other records are dropped if the current session makes them itself. The rest are facts that items do not show
///   (TLS, connections, decisions of this program, undecoded bytes): they are passed on, and the session is informed.
/// - The diagnosis is today's, where every item is there and this program kept out of it; else the recording's.
final class RecordedSession {
    enum State {
        case open, ended
    }

    /// The key that distinguishes records other than items.
    private struct Key: Hashable {
        var code: String?
        var kind: Record.Kind
        var step: String?
        var leg: String?

        init(_ record: Record) {
            code = record.code
            kind = record.kind
            guard code == LoginStep.code else { return }
            step = record.details?[LoginStep.code]?.text
            leg = record.details?["leg"]?.text
        }
    }

    private let runner: SessionRunner
    private let run: Run
    /// The records that the session has made of the item read last.
    private var made: [Key: Int] = [:]
    /// The end of a step in progress, by an event that items do not show or by the session's end; and later records.
    private var waiting: [RecordLine] = []
    private var diagnosis: RecordLine?
    /// The most records that are held back for the end of a step.
    private static let mostWaiting = 256
    /// This program logs in to the server for the client, whose login it has ended.
    private var isLoggingIn = false

    init(_ runner: SessionRunner, _ run: Run) {
        self.runner = runner
        self.run = run
    }

    /// Takes the next record.
    func take(_ line: RecordLine, at now: Run.Instant, _ tell: (consuming RecordLine) -> Void) -> State {
        let record = line.record
        if isRead(line) {
            emitWaiting(tell)
            read(line, at: now, tell)
            return .open
        }
        switch record.code {
        case Record.Code.sessionBegan, Record.Code.reconnectLoop: return .open
        case Record.Code.loginFailed:
            diagnosis = line
            return .open
        case Record.Code.sessionEnded:
            end(record, at: now, tell)
            return .ended
        default: break
        }
        if let count = made[Key(record)], count > 0 {
            made[Key(record)] = count - 1
        } else if !waiting.isEmpty || runner.session.timeline.isUnderWay(record) {
            waiting.append(line)
            if waiting.count > Self.mostWaiting { release(tell) }
        } else {
            emit(line, tell)
        }
        return .open
    }

    /// Gives what is held back, since nothing more comes or too much is held.
    func release(_ tell: (consuming RecordLine) -> Void) {
        emitWaiting(tell)
        if let diagnosis { emit(diagnosis, tell) }
        diagnosis = nil
    }

    private func emitWaiting(_ tell: (consuming RecordLine) -> Void) {
        for line in waiting { emit(line, tell) }
        waiting = []
    }

    // MARK: Items

    private func isRead(_ line: RecordLine) -> Bool {
        let record = line.record
        guard let direction = record.direction, record.kind.isStreamItem, let xml = record.xml, !xml.isEmpty,
            !record.isTruncated
        else { return false }
        let isLogin = record.part == .sasl && record.kind == .element
        switch (record.origin, direction) {
        case (.tap, .recv): return isLogin
        case (.tap, .send):
            if isLogin { isLoggingIn = true }
            return record.name.map { line.content.span.slice($0).equals("starttls") } ?? false
        case (.peer, .send):
            if isLogin { isLoggingIn = false }
            return !wasRefused(line)
        case (.peer, .recv): return !(isLogin && isLoggingIn) && !wasRefused(line)
        }
    }

    /// Whether an item ended the session, so that nothing more was read of it than its head: a login or an offer in clear
    /// where TLS is required.
    private func wasRefused(_ line: RecordLine) -> Bool {
        let record = line.record
        guard record.kind == .element, let range = record.name else { return false }
        let name = line.content.span.slice(range)
        if name.equals("features") { return record.details == nil }
        return name.equals("auth") || name.equals("authenticate") ? record.part != .sasl : false
    }

    private func read(_ line: RecordLine, at now: Run.Instant, _ tell: (consuming RecordLine) -> Void) {
        made = [:]
        runner.session.receive(line, at: now)
        var isTold = false
        runner.drain { redacted, content in
            let record = redacted.record
            guard !isTold, record.kind.isStreamItem, record.direction == line.record.direction else {
                made[Key(record), default: 0] += 1
                return tell(RecordLine(redacted, content: content))
            }
            isTold = true
            tell(line.record.origin == .tap ? line.numbered(record.sequence) : line.remade(redacted, content: content))
        }
        if !isTold { tell(line.numbered(run.nextSequence())) }
    }

    // MARK: What no item shows

    private func emit(_ line: RecordLine, _ tell: (consuming RecordLine) -> Void) {
        runner.session.recall(line)
        tell(line.numbered(run.nextSequence()))
    }

    private func end(_ record: Record, at now: Run.Instant, _ tell: (consuming RecordLine) -> Void) {
        // Steps that the end itself has cut off are reported by the session again, if it knows that they were in
        // progress.
        let isPartial = runner.session.isPartial
        for line in waiting
        where isPartial || line.record.code != LoginStep.code || line.record.monotonic < now.monotonic {
            emit(line, tell)
        }
        let isRecalled = runner.session.recall(diagnosis.flatMap { LoginDiagnosis($0.record) })
        if !isRecalled, let diagnosis { emit(diagnosis, tell) }
        runner.session.closed(as: record, at: now)
        runner.drain { tell(RecordLine($0, content: $1)) }
    }
}
