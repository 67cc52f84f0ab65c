internal import TapDiagnosis
internal import TapRecord
internal import XMPPCore

/// A session that the current code reprocesses from a recording.
///
/// - An item that a peer sent is decoded again. Its secrets are placeholders, so the SASL details come from the
///   recording, as do the item's position on the wire and the actions on it.
/// - An item that xmpptap sent is output as it was recorded. It is also decoded if it replaced an item of a peer: the
///   request for TLS, and the answers to a client whose login xmpptap performed.
/// - Another record is dropped if the session creates the same record itself. The remaining records contain facts that
///   items do not show (TLS, connections, decisions of xmpptap, undecoded bytes): they are output, and the session
///   applies them.
/// - The diagnosis is made by the current code if the items alone show the outcome. If not, the recorded diagnosis is
///   used.
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
    /// The number of records of each kind that the session created for the last decoded item.
    private var made: [Key: Int] = [:]
    /// Held records: the end of a pending step, caused by an event that items do not show or by the session's end, and
    /// all later records.
    private var waiting: [RecordLine] = []
    private var diagnosis: RecordLine?
    /// The largest number of records that are held until a step ends.
    private static let maximumWaiting = 256
    /// Whether xmpptap is logging in to the server for the client.
    private var isLoggingIn = false

    init(_ runner: SessionRunner, _ run: Run) {
        self.runner = runner
        self.run = run
    }

    /// Processes the next record of the recording.
    func process(_ line: RecordLine, at now: Run.Instant, _ handler: (consuming RecordLine) -> Void) -> State {
        let record = line.record
        if isRead(line) {
            emitWaiting(handler)
            read(line, at: now, handler)
            return .open
        }
        switch record.code {
        case Record.Code.sessionBegan, Record.Code.reconnectLoop: return .open
        case Record.Code.loginFailed:
            diagnosis = line
            return .open
        case Record.Code.sessionEnded:
            end(record, at: now, handler)
            return .ended
        default: break
        }
        if let count = made[Key(record)], count > 0 {
            made[Key(record)] = count - 1
        } else if !waiting.isEmpty || runner.session.timeline.isUnderWay(record) {
            waiting.append(line)
            if waiting.count > Self.maximumWaiting { release(handler) }
        } else {
            emit(line, handler)
        }
        return .open
    }

    /// Outputs the held records, because no further record follows, or too many are held.
    func release(_ handler: (consuming RecordLine) -> Void) {
        emitWaiting(handler)
        if let diagnosis { emit(diagnosis, handler) }
        diagnosis = nil
    }

    private func emitWaiting(_ handler: (consuming RecordLine) -> Void) {
        for line in waiting { emit(line, handler) }
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

    /// Returns whether an item was refused, so that only its head was read: a login or an offer in clear although TLS
    /// was required.
    private func wasRefused(_ line: RecordLine) -> Bool {
        let record = line.record
        guard record.kind == .element, let range = record.name else { return false }
        let name = line.content.span.slice(range)
        if name.equals("features") { return record.details == nil }
        return name.equals("auth") || name.equals("authenticate") ? record.part != .sasl : false
    }

    private func read(_ line: RecordLine, at now: Run.Instant, _ handler: (consuming RecordLine) -> Void) {
        made = [:]
        runner.session.receive(line, at: now)
        var isEmitted = false
        runner.drain { redacted, content in
            let record = redacted.record
            guard !isEmitted, record.kind.isStreamItem, record.direction == line.record.direction else {
                made[Key(record), default: 0] += 1
                return handler(RecordLine(redacted, content: content))
            }
            isEmitted = true
            handler(
                line.record.origin == .tap ? line.numbered(record.sequence) : line.remade(redacted, content: content)
            )
        }
        if !isEmitted { handler(line.numbered(run.nextSequence())) }
    }

    // MARK: Facts that items do not show

    private func emit(_ line: RecordLine, _ handler: (consuming RecordLine) -> Void) {
        runner.session.apply(line)
        handler(line.numbered(run.nextSequence()))
    }

    private func end(_ record: Record, at now: Run.Instant, _ handler: (consuming RecordLine) -> Void) {
        // The session reports steps that were pending at its end again, so their recorded ends are dropped. If the
        // items alone do not show the outcome, the recorded ends are kept.
        let isPartial = runner.session.isPartial
        for line in waiting
        where isPartial || line.record.code != LoginStep.code || line.record.monotonic < now.monotonic {
            emit(line, handler)
        }
        let isRecalled = runner.session.apply(diagnosis.flatMap { LoginDiagnosis($0.record) })
        if !isRecalled, let diagnosis { emit(diagnosis, handler) }
        runner.session.closed(as: record, at: now)
        runner.drain { handler(RecordLine($0, content: $1)) }
    }
}
