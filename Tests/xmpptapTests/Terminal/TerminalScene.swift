import Foundation
import TapCapture
import TapCore
import TapRecord

@testable import xmpptap

/// An inspector of records in memory, and the screen that it draws.
struct TerminalScene {
    private var inspector: Inspector
    let inspection: Inspection
    let messages = TerminalMessages()
    private(set) var screen: Screen
    /// The requests to the owner of the terminal.
    private(set) var requests: [Inspector.Request] = []

    init(_ lines: [String], width: Int, height: Int = 24) {
        let table = RecordTable()
        Self.append(lines, to: table)
        let subject = Inspection.Subject(title: "today.xtap", tool: "test", isLive: false, redaction: "secrets")
        self.init(Inspection(subject, run: "run", table), width: width, height: height)
        inspection.surveyAll { true }
        draw()
    }

    /// Creates an inspector of a running proxy without records.
    init(live limits: RecordTable.Limits, width: Int, height: Int = 24) {
        let live = LiveTable(limits) {
            Run.Instant(time: Timestamp(nanoseconds: 1_796_000_000_000_000_000), monotonic: 0)
        } onChange: {
        }
        let subject = Inspection.Subject(
            title: "proxy",
            server: "example.net",
            tool: "test",
            isLive: true,
            redaction: "secrets"
        )
        self.init(Inspection(subject, run: "run", live), width: width, height: height)
        draw()
    }

    private init(_ inspection: Inspection, width: Int, height: Int) {
        self.inspection = inspection
        inspector = Inspector(inspection, messages: messages, zone: .utc)
        screen = Screen(width: width, height: height)
    }

    private static func append(_ lines: [String], to table: RecordTable) {
        for line in lines {
            table.append { output in
                output.append(bytes: Array(line.utf8))
                output.endLine()
            }
        }
    }

    /// Appends records.
    func append(_ lines: [String]) { Self.append(lines, to: inspection.table) }

    /// The rows of the screen.
    var lines: [String] { screen.lines }

    /// The rows between the lines at the top and at the bottom.
    var body: [String] { Array(lines.dropFirst(2).dropLast(2)) }

    /// The row with the mark of the selection; empty if there is none.
    var selected: String { body.first { $0.hasPrefix(">") } ?? "" }

    var hasNews: Bool { inspector.hasNews() }

    /// Continues searches to their ends, and draws.
    mutating func draw() {
        repeat { redraw() } while inspector.advance()
        redraw()
    }

    private mutating func redraw() {
        screen = Screen(width: screen.width, height: screen.height)
        inspector.draw(to: &screen)
    }

    mutating func resize(_ width: Int, _ height: Int) {
        screen = Screen(width: width, height: height)
        draw()
    }

    /// Presses keys, and draws after each.
    mutating func press(_ keys: Key...) {
        for key in keys {
            if let request = inspector.handle(key) { requests.append(request) }
            draw()
        }
    }

    /// Types a text, and draws after each character.
    mutating func type(_ text: String) { for character in text { press(.character(character)) } }

    /// Presses keys without drawing between them, as if they had arrived in one read.
    mutating func pressAtOnce(_ keys: Key...) {
        for key in keys { if let request = inspector.handle(key) { requests.append(request) } }
        draw()
    }
}

/// Records of two sessions: one that works, and one whose login fails.
enum TerminalRecords {
    private static func line(_ number: Int, _ session: Int, _ fields: String, level: String = "info") -> String {
        let second = String(format: "%02d", number / 10 % 60)
        let fraction = String(format: "%09d", number % 10 * 100_000_000)
        return
            #"{"sequence":\#(number),"time":"2026-11-29T10:00:\#(second).\#(fraction)Z","monotonic":\#(number).5,"level":"\#(level)","part":"session","session":\#(session),\#(fields)}"#
    }

    static let juliet = #""jid":"juliet@example.net/balcony""#

    /// The login of the first session, an iq with its answer, a message with strange characters, an edited message, and
    /// the failed login of the second session.
    static let logins = [
        line(
            1,
            1,
            #""kind":"session","code":"session-began","message":"session began","details":{"upstream":"example.net:5222"}"#
        ),
        line(
            2,
            1,
            #""kind":"session","code":"step","round_trip":0.0005,"message":"connect: ok","details":{"step":"connect","outcome":"ok"}"#,
            level: "verbose"
        ),
        line(
            3,
            1,
            #""kind":"stream-open","direction":"send","leg":"client","length":90,"xml":"<stream:stream to='example.net'>""#,
            level: "verbose"
        ),
        line(4, 1, #""kind":"session","code":"session-ready","message":"ready after 38 ms",\#(juliet)"#),
        line(
            5,
            1,
            #"\#(juliet),"kind":"stanza","direction":"send","leg":"client","length":74,"name":"iq","type":"get","id":"r1","payload":"{jabber:iq:roster}query","summary":"roster request","xml":"<iq type='get' id='r1'><query xmlns='jabber:iq:roster'/></iq>""#
        ),
        line(
            6,
            1,
            #"\#(juliet),"kind":"stanza","direction":"recv","leg":"server","length":52,"name":"iq","type":"result","id":"r1","from":"juliet@example.net","answers":5,"round_trip":0.012,"summary":"roster: 2 contacts","xml":"<iq type='result' id='r1' from='juliet@example.net'/>""#
        ),
        line(
            7,
            1,
            #"\#(juliet),"kind":"stanza","direction":"recv","leg":"server","length":120,"name":"message","type":"chat","id":"m1","from":"romeo@example.org/orchard","payload":"{jabber:client}body","summary":"body 9 B","xml":"<message type='chat' id='m1' from='romeo@example.org/orchard'><body>漢字 \#("\\u001b")[31m red</body><x xmlns='urn:example'/></message>""#
        ),
        line(
            8,
            1,
            #"\#(juliet),"kind":"stanza","direction":"send","leg":"client","length":60,"name":"message","type":"chat","id":"m2","to":"romeo@example.org","action":"dropped","rule":"no.pfw:3","summary":"body 5 B","xml":"<message type='chat' id='m2' to='romeo@example.org'><body>hello</body></message>""#
        ),
        line(
            9,
            2,
            #""kind":"session","code":"session-began","message":"session began","details":{"upstream":"example.net:5222"}"#
        ),
        line(
            10,
            2,
            #""kind":"note","user":"romeo","domain":"example.net","condition":"not-authorized","code":"login-failed","message":"the login failed at sasl","details":{"cause":"wrong-password","step":"sasl","side":"client","rule":"RFC 6120 §6.5.10","proxy_is_cause":false,"finding":"the password is wrong","try":"check the password"}"#,
            level: "error"
        ),
        line(
            11,
            2,
            #""kind":"session","code":"session-ended","message":"session ended","details":{"close_reason":"client-closed"}"#
        ),
    ]

    /// Messages of one session.
    static func messages(_ numbers: ClosedRange<Int>) -> [String] {
        numbers.map { number in
            line(
                number,
                1,
                #"\#(juliet),"kind":"stanza","direction":"\#(number.isMultiple(of: 2) ? "send" : "recv")","leg":"client","length":60,"name":"message","type":"chat","id":"m\#(number)","to":"romeo@example.org","summary":"text","xml":"<message type='chat' id='m\#(number)'><body>number \#(number)</body></message>""#
            )
        }
    }
}
