import TapCore
import TapRecord

/// Records a session as a JSON log. Lines of standard input begin with `C: ` or `S: `, for bytes of the client or the
/// server.
@main
enum TapSession {
    static func main() {
        let options = SessionOptions(level: .verbose, redaction: .secrets)
        var sessions = SourceRunner(run: Run(), options: options)
        // Real programs read both clocks.
        var now = Run.Instant(time: Timestamp(nanoseconds: 1_764_288_000_000_000_000), monotonic: 0)
        let header = RecordHeader(
            tool: "TapSession",
            time: now.time,
            level: "verbose",
            isComplete: true,
            redaction: .secrets,
            run: "example"
        )
        print(LineBuffer.text { header.append(to: &$0) }, terminator: "")
        var form = JSONForm()
        func write(_ line: consuming RecordLine) {
            print(LineBuffer.text { form.append(line, [.content], to: &$0) }, terminator: "")
        }
        sessions.process(.began(session: 1, at: now), write)
        sessions.process(.connected(to: "example.org:5222", session: 1, at: now), write)
        while let line = readLine(strippingNewline: false) {
            now = now.advanced(by: 1_000_000)
            let direction: Direction = line.hasPrefix("C: ") ? .send : .recv
            sessions.process(.received(direction, Array(line.utf8.dropFirst(3)), session: 1, at: now), write)
        }
        sessions.process(.closed(session: 1, at: now), write)
    }
}
