import Foundation
import TapTestKit

/// A talk of Juliet and Romeo by slixmpp through a proxy to a Prosody: she has him for a contact, loses her connection and
/// resumes it, and gets one message of his.
enum RecordedTalk {
    /// Records it.
    ///
    /// - Returns: Path of the capture; Juliet's are sessions 1 and 2.
    static func record(_ message: String, into folder: TemporaryFolder) async throws -> String {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port)
        let juliet = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: tap.port,
            .init(ping: true, receive: 1),
            options: ["--add", Account.romeo.jid, "--resume"]
        )
        try await juliet.event("ready")
        let romeo = try ScriptedClient(
            .slixmpp,
            as: .romeo,
            port: tap.port,
            .init(ping: true, send: [(.juliet, message)])
        )
        try await juliet.finish()
        try await romeo.finish()
        try await tap.stop()
        try await server.stop()
        return try folder.write(Tap.read(tap.capture), to: "talk.xtap")
    }
}
