import Foundation
import TapRecord
import TapRules

@testable import TapCapture

/// Records of two sessions, as lines of a capture.
enum RecordedLines {
    static let header =
        #"{"xtap":1,"tool":"test","time":"2026-11-29T10:00:00Z","level":"verbose","filter":null,"complete":true,"redaction":"secrets","run":"a","records_before":0}"#

    /// The header of a log that does not have all records.
    static let log = header.replacing(#""complete":true"#, with: #""complete":false"#)

    /// A request, its answer, a message and an error, each 10 ms after the one before, over and over.
    static func lines(_ count: Int) -> [String] { (1...count).map(line) }

    static func line(_ number: Int) -> String {
        let session = number % 2 + 1
        let nanoseconds = String(format: "%09d", number % 100 * 10_000_000)
        let head =
            #"{"sequence":\#(number),"time":"2026-11-29T10:00:00.\#(nanoseconds)Z","monotonic":\#(number).5,"level":"\#(number % 4 == 0 ? "warn" : "info")","kind":"stanza","session":\#(session),"jid":"romeo\#(session)@example.net/orchard""#
        switch number % 4 {
        case 1:
            let xml = "<iq type='get' id='p\(number)' to='example.net'><ping xmlns='urn:xmpp:ping'/></iq>"
            return
                #"\#(head),"direction":"send","leg":"client","length":\#(xml.utf8.count),"name":"iq","to":"example.net","type":"get","id":"p\#(number)","payload":"{urn:xmpp:ping}ping","summary":"ping","xml":"\#(xml)"}"#
        case 2:
            let xml = "<iq type='result' id='p\(number - 1)' from='example.net'/>"
            return
                #"\#(head),"direction":"recv","leg":"server","length":\#(xml.utf8.count),"name":"iq","from":"example.net","type":"result","id":"p\#(number - 1)","answers":\#(number - 1),"round_trip":0.012,"summary":"ok: ping","xml":"\#(xml)"}"#
        case 3:
            let xml =
                "<message to='juliet@example.org' type='chat' id='m\(number)'><body>Hello \(number)</body></message>"
            return
                #"\#(head),"direction":"send","leg":"client","length":\#(xml.utf8.count),"name":"message","to":"juliet@example.org","type":"chat","id":"m\#(number)","payload":"{jabber:client}body","summary":"body 7 B","xml":"\#(xml)"}"#
        default:
            let xml =
                "<message from='juliet@example.org' type='error' id='e\(number)'><error><service-unavailable/></error></message>"
            return
                #"\#(head),"direction":"recv","leg":"server","length":\#(xml.utf8.count),"name":"message","from":"juliet@example.org","type":"error","id":"e\#(number)","condition":"service-unavailable","xml":"\#(xml)"}"#
        }
    }

    /// Returns an inspection of the lines.
    static func inspection(_ lines: [String], _ limits: RecordTable.Limits = .none, spills: Bool = false) -> Inspection
    {
        let table = RecordTable(limits, spills: spills)
        for line in lines {
            table.append { output in
                output.append(bytes: Array(line.utf8))
                output.endLine()
            }
        }
        return Inspection(subject, run: "run", table)
    }

    static let subject = Inspection.Subject(title: "test", tool: "test", isLive: false, redaction: "secrets")

    /// Opens files and reads all their records.
    static func opened(_ paths: [String], reanalysedBytes: UInt64 = .max) throws -> (RecordFiles, Inspection) {
        let files = try RecordFiles(paths, reanalysedBytes: reanalysedBytes)
        let inspection = Inspection(subject, run: "run", files.table)
        files.load(inspection) { true }
        return (files, inspection)
    }
}

/// An answer of an inspection.
struct InspectionAnswer {
    let fields: [String: Any]

    init(_ bytes: [UInt8]) throws {
        fields = try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any] ?? [:]
    }

    func numbers(_ name: String) -> [Int] { fields[name] as? [Int] ?? [] }
    func texts(_ name: String) -> [String] { fields[name] as? [String] ?? [] }
    func number(_ name: String) -> Int? { fields[name] as? Int }
    func objects(_ name: String) -> [[String: Any]] { fields[name] as? [[String: Any]] ?? [] }
}
