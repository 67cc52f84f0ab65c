import Synchronization
import TapTestKit

/// A scripted server that accepts any login and sends the given answers.
final class ReplayPeer: Sendable {
    /// The login that the server offers.
    enum Login: Sendable {
        /// SASL (RFC 6120 §6) and account creation (XEP-0077).
        case sasl
        /// Only SASL2 (XEP-0388), with resource binding during (XEP-0386) or after the authentication.
        case sasl2(bindsInline: Bool)
        /// SASL, with this answer to the authentication.
        case refused(String)
        /// SASL; after the login, the server reads nothing.
        case deaf
    }

    /// The answer to a client's item that contains the text `to`. In the answer, `ID` is replaced by the item's id, and
    /// `FIRST` by the id of the client's first request with `type='get'`. `CLOSE` closes the connection instead. The
    /// answer is sent up to the first byte after `SPLIT`, and the rest 300 ms later.
    typealias Answer = (to: String, answer: String)

    private let listener: RawListener
    private let login: Login
    private let answers: [Answer]
    private let afterwards: (after: Duration, item: String)?
    private let items = Mutex<[(text: String, at: ContinuousClock.Instant)]>([])
    private let task = Mutex<Task<Void, Never>?>(nil)

    /// - Parameter afterwards: An item sent after each answer, with the given delay.
    init(_ login: Login = .sasl, answers: [Answer] = [], afterwards: (after: Duration, item: String)? = nil) throws {
        var room: Int32?
        if case .deaf = login { room = 65_536 }
        listener = try RawListener(room: room)
        (self.login, self.answers, self.afterwards) = (login, answers, afterwards)
        let serving = Task { [listener, weak self] in
            await withDiscardingTaskGroup { group in
                while let connection = try? await listener.accept(within: .seconds(300)) {
                    group.addTask { try? await self?.serve(connection) }
                }
            }
        }
        task.withLock { $0 = serving }
    }

    deinit { task.withLock { $0?.cancel() } }

    var port: UInt16 { listener.port }

    /// All data received from the clients, with the times.
    var received: [(text: String, at: ContinuousClock.Instant)] { items.withLock { $0 } }

    /// All received data as one text.
    var text: String { received.map(\.text).joined() }

    /// Replays a capture with this server, or through a proxy on the given port. The account replaces juliet in the
    /// recording.
    func replay(
        _ capture: String,
        in folder: TemporaryFolder,
        _ arguments: [String] = [],
        as account: String = "juliet@localhost",
        through port: UInt16? = nil
    ) async throws -> (ending: ToolProcess.Ending, output: String, error: String) {
        try folder.write("secret\n", to: "password")
        let accounts = try folder.write("\(account) password as=juliet@localhost\n", to: "accounts.txt")
        return try await XMPPTapBinary.run(
            ["replay", capture, "--to", "127.0.0.1:\(port ?? self.port)", "--accounts", accounts] + arguments
        )
    }

    // MARK: Output

    private static let header =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' from='localhost' id='1' version='1.0'>"
    private static let mechanisms =
        "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>"
        + "<register xmlns='http://jabber.org/features/iq-register'/></stream:features>"
    private static let binding = "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>"
    private static let bound =
        "<iq id='ID' type='result'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>juliet@localhost/1</jid></bind></iq>"

    private var offer: String {
        guard case .sasl2(let bindsInline) = login else { return Self.mechanisms }
        let inline = bindsInline ? "<inline><bind xmlns='urn:xmpp:bind:0'/></inline>" : ""
        return "<stream:features><authentication xmlns='urn:xmpp:sasl:2'><mechanism>PLAIN</mechanism>\(inline)"
            + "</authentication></stream:features>"
    }

    private var success: String {
        switch login {
        case .sasl, .deaf: return "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"
        case .refused(let answer): return answer
        case .sasl2(let bindsInline):
            let jid = "<authorization-identifier>juliet@localhost\(bindsInline ? "/1" : "")</authorization-identifier>"
            let bound = bindsInline ? "<bound xmlns='urn:xmpp:bind:0'/>" : ""
            return "<success xmlns='urn:xmpp:sasl:2'>\(jid)\(bound)</success>"
                + (bindsInline ? "<stream:features/>" : Self.binding)
        }
    }

    /// Serves one client until it disconnects.
    private func serve(_ connection: RawConnection) async throws {
        var isAuthenticated = false
        var first = ""
        while true {
            let (bytes, end) = try await connection.read(within: .seconds(60)) { $0.last == UInt8(ascii: ">") }
            guard end == .enough else { return connection.close() }
            // The client writes an item in one piece, so it is read in one piece.
            let text = String(decoding: bytes, as: UTF8.self)
            items.withLock { $0.append((text, .now)) }
            if text.contains("<stream:stream") {
                try await connection.write(Self.header + (isAuthenticated ? Self.binding : offer))
            } else if text.contains("<auth") {
                isAuthenticated = true
                try await connection.write(success)
            } else if text.contains("xmpp-bind") {
                try await connection.write(Self.bound.replacing("ID", with: Self.id(of: text)))
                if case .deaf = login {
                    try? await Task.sleep(for: .seconds(60))
                    return connection.close()
                }
            } else if text.contains("</stream:stream>") {
                try await connection.write("</stream:stream>")
                return connection.close()
            }
            for item in text.split(separator: "<iq ") {
                if first.isEmpty, item.contains("type='get'") { first = Self.id(of: String(item)) }
                guard let (_, answer) = answers.first(where: { item.contains($0.to) }) else { continue }
                guard answer != "CLOSE" else { return connection.finish() }
                var bytes = Array(
                    answer.replacing("FIRST", with: first).replacing("ID", with: Self.id(of: String(item))).utf8
                )
                if let mark = bytes.firstRange(of: Array("SPLIT".utf8)) {
                    bytes.removeSubrange(mark)
                    try await connection.write(Array(bytes[...mark.lowerBound]))
                    try await Task.sleep(for: .milliseconds(300))
                    bytes.removeSubrange(...mark.lowerBound)
                }
                try await connection.write(bytes)
                guard let (after, item) = afterwards else { continue }
                try await Task.sleep(for: after)
                try await connection.write(item)
            }
        }
    }

    private static func id(of text: String) -> String {
        guard let start = text.firstRange(of: "id='") else { return "" }
        return String(text[start.upperBound...].prefix { $0 != "'" })
    }
}
