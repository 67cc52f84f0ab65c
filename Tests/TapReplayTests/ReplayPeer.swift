import TapRecord
import TapReplay
import TapTestKit
import Testing
import XMPPCore

/// A server that answers items as the script defines, with `ID` replaced by the id of the item. `ended` ends a
/// client's session, `ended REASON` with an error.
struct ReplayPeer {
    var replayer: Replayer
    var now: Int64 = 0
    /// The actions in order, with the sent bytes.
    var log: [String] = []
    var isFinished = false
    /// Clients from which the server stops reading, with the item at which it stops.
    var stalling: [Int: String] = [:]
    /// Whether the session of a client is resumed.
    var resumes: (Int) -> Bool = { _ in true }
    /// The answer that the first client receives `after` nanoseconds after an unanswered request.
    var delayed: (after: Int64, answer: String)?
    /// The next item for the first client, received slowly: one byte before each deadline, complete after `bytes`
    /// bytes.
    var dripping: (item: String, bytes: Int)?
    private let parser = StanzaParser()
    private let reply: (Int, String) -> [(Int, String)]

    init(
        _ text: String,
        _ accounts: [(String, String)] = [("juliet@capulet.example", "juliet@live.example")],
        options: ReplayOptions = ReplayOptions(),
        puppets: [String] = [],
        prepares: Bool = false,
        copy: Int? = nil,
        seed: UInt64 = 1,
        sharesTemplates: Bool = false,
        reply: @escaping (Int, String) -> [(Int, String)]
    ) throws {
        self.reply = reply
        var generator = ReplayGenerator(seed: seed)
        let script = ReplayScript(
            try RecordedText(text).conversations,
            puppets: try puppets.map { try JID(parsing: $0) },
            prepares: prepares
        )
        let rules = NoiseRules()
        replayer = Replayer(
            script,
            accounts: try accounts.map { (try JID(parsing: $0), try JID(parsing: $1)) },
            copy: copy,
            rules: rules,
            options: options,
            sendings: sharesTemplates ? script.sendings(options, rules: rules, sharesTemplates: true) : nil,
            using: &generator
        )
    }

    mutating func run() throws {
        replayer.tick(at: now)
        for _ in 0..<10_000 where !isFinished {
            while let action = replayer.next(at: now) { try perform(action) }
            guard !isFinished else { return }
            let deadline = try #require(replayer.nextDeadline, "the replay waits for ever: \(log)")
            if let (delay, answer) = delayed, let request = log.last(where: { $0.contains("<iq") }) {
                delayed = nil
                now += delay
                try receive(0, answer, to: request)
                continue
            }
            now = max(now, deadline)
            try drip()
            replayer.tick(at: now)
        }
        try #require(isFinished, "the replay does not end")
    }

    private mutating func perform(_ action: Replayer.Action) throws {
        now += 1_000_000
        switch action {
        case .connect(let client, let resuming):
            log.append("connect \(client)\(resuming.map { " \($0.id) \($0.handled)" } ?? "")")
            guard resuming == nil || !resumes(client) else {
                return replayer.handle(.resumed, client: client, at: now)
            }
            let account = replayer.script.clients[client].account.local ?? ""
            replayer.handle(.bound(try JID(parsing: "\(account)@live.example/\(client)")), client: client, at: now)
        case .send(let client, let bytes):
            let text = String(decoding: bytes, as: UTF8.self)
            log.append("\(client) \(text)")
            if let last = stalling[client], text.contains(last) {
                return replayer.handle(.stalled, client: client, at: now)
            }
            for (receiver, answer) in reply(client, text) {
                if answer.hasPrefix("ended") {
                    let reason = answer.dropFirst("ended ".count)
                    replayer.handle(.ended(reason.isEmpty ? nil : String(reason)), client: receiver, at: now)
                    continue
                }
                try receive(receiver, answer, to: text)
            }
        case .close(let client):
            log.append("close \(client)")
            replayer.handle(.ended(nil), client: client, at: now)
        case .drop(let client): log.append("drop \(client)")
        case .finish: isFinished = true
        }
    }

    private mutating func drip() throws {
        guard let (item, bytes) = dripping, let request = log.last(where: { $0.contains("<iq") }) else { return }
        dripping = bytes > 1 ? (item, bytes - 1) : nil
        if bytes > 1 {
            replayer.reportIncomplete(100 - bytes, client: 0, at: now - 1)
        } else {
            try receive(0, item, to: request)
        }
    }

    private mutating func receive(_ client: Int, _ answer: String, to text: String) throws {
        let bytes = Array(answer.replacing("ID", with: Self.id(of: text)).utf8)
        let element = try parser.parse(bytes.span, root: StanzaForm.clientDeclarations)
        replayer.handle(.received(bytes, element), client: client, at: now)
    }

    private static func id(of text: String) -> String {
        guard let start = text.firstRange(of: " id='") else { return "" }
        return String(text[start.upperBound...].prefix { $0 != "'" })
    }

    var found: [String] { Self.words(replayer.divergences) }

    /// Returns the divergences that follow from the one at an index.
    func followed(_ place: Int) -> [String] {
        replayer.divergences.indices.contains(place) ? Self.words(replayer.divergences[place].followed) : []
    }

    private static func words(_ divergences: [Divergence]) -> [String] {
        divergences.map { "\($0.divergenceClass.rawValue) \($0.code.rawValue) \($0.recorded?.sequence ?? 0)" }
    }
}

// Recordings that several suites use.
extension ReplayPeer {
    static let roster = """
        1 1 ready juliet@capulet.example/balcony
        2 1 send <iq id='r' type='get'><query xmlns='jabber:iq:roster'/></iq>
        3 1 recv <iq id='r' type='result' to='juliet@capulet.example/balcony'><query xmlns='jabber:iq:roster'><item jid='romeo@capulet.example'/></query></iq>
        4 1 send <presence/>
        5 1 recv <presence from='juliet@capulet.example/balcony'/>
        6 1 send </stream:stream>
        7 1 ended
        """

    static func answer(_ client: Int, _ text: String) -> [(Int, String)] {
        if text.contains("jabber:iq:roster") {
            let contact = "<item jid='romeo@live.example'/>"
            return [
                (
                    0,
                    "<iq to='juliet@live.example/0' type='result' id='ID'><query xmlns='jabber:iq:roster'>\(contact)</query></iq>"
                )
            ]
        }
        return text == "<presence/>" ? [(0, "<presence from='juliet@live.example/0'/>")] : []
    }

    static let both = [
        ("juliet@capulet.example", "juliet@live.example"), ("romeo@capulet.example", "romeo@live.example"),
    ]
}
