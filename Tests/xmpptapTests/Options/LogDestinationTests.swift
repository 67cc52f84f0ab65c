import TapRecord
import TapRules
import Testing

@testable import xmpptap

struct LogDestinationTests {
    @Test(
        "A log destination is a path, followed by words in any order",
        arguments: [
            ("tap.log", LogDestination(path: "tap.log")),
            ("-", LogDestination(path: "-")),
            ("./info", LogDestination(path: "./info")),
            ("tap.jsonl,format=json", LogDestination(path: "tap.jsonl", form: .json)),
            ("t,verbose,format=pretty", LogDestination(path: "t", form: .pretty, spec: LogSpec(level: .verbose))),
            ("t,format=text,warn,send", LogDestination(path: "t", spec: LogSpec(level: .warn, send: true))),
            (
                "t,warn,format=json,recv",
                LogDestination(path: "t", form: .json, spec: LogSpec(level: .warn, receive: true))
            ),
            ("t,off", LogDestination(path: "t", spec: LogSpec(level: .off))),
            ("t,filter=message", LogDestination(path: "t", filter: try? RecordFilter("message"))),
            (
                "t,format=json,verbose,filter=type:chat,normal and body~\"a,filter=b\"",
                LogDestination(
                    path: "t",
                    form: .json,
                    spec: LogSpec(level: .verbose),
                    filter: try? RecordFilter("type:chat,normal and body~\"a,filter=b\"")
                )
            ),
        ] as [(String, LogDestination)]
    )
    func reading(text: String, destination: LogDestination) throws {
        #expect(try LogDestination(text) == destination)
    }

    @Test(
        "Other log destinations are refused with a remedy",
        arguments: [
            ("", "the path is missing; write it first, as in tap.log,format=json,verbose"),
            (",info", "the path is missing; write it first, as in tap.log,format=json,verbose"),
            ("info,send", "the path must come first, as in tap.log,info,send; for a file named info write ./info"),
            (
                "format=json",
                "the path must come first, as in tap.log,format=json; for a file named format=json write ./format=json"
            ),
            ("t,format=xml", "unknown log format 'format=xml'; choose one of text, json, pretty, compact"),
            ("t,format=json,format=json", "format= given more than once"),
            (
                "t,filter=mesage",
                "filter=: column 1: unknown condition \"mesage\"; expected a condition such as message, type:chat or body~\"hello\"; did you mean \"message\"?"
            ),
            ("t,filter=", "filter=: column 1: the filter is empty; expected a condition such as message"),
            // Text after the filter belongs to it.
            ("t,filter=iq,verbose", "filter=: column 3: unexpected \",verbose\"; expected and, or, \")\" or the end"),
        ]
    )
    func refusing(text: String, message: String) {
        #expect(refusal { try LogDestination(text) } == message)
    }

    @Test(
        "A misspelt word is reported with its column in the complete value",
        arguments: [("t,verbos", 3), ("tap.log,format=json,verbos", 21), ("t,info,format=json,verbos", 20)]
    )
    func columns(text: String, column: Int) {
        #expect(
            refusal { try LogDestination(text) }
                == "\"verbos\" at column \(column) is not part of a log specification; did you mean \"verbose\"?"
        )
    }

    @Test("An empty word is refused", arguments: [("t,", 3), ("t,info,", 8), ("t,,info", 3)])
    func emptyWords(text: String, column: Int) {
        #expect(refusal { try LogDestination(text) }.hasPrefix("an empty word at column \(column);"))
    }
}
