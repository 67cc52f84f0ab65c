import Foundation
import TapTestKit

/// A talk of Juliet and Romeo by slixmpp through a proxy to a Prosody, in which she gets messages of his.
enum RecordedTalk {
    /// Records it.
    ///
    /// - Parameter options: Juliet's options. By default she adds him to her contacts, loses her connection and resumes it,
    ///   so that hers are sessions 1 and 2.
    /// - Returns: Path of the capture.
    static func record(
        _ messages: String...,
        options: [String] = ["--add", Account.romeo.jid, "--resume"],
        into folder: TemporaryFolder
    ) async throws -> String {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port)
        let juliet = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: tap.port,
            .init(ping: true, receive: messages.count),
            options: options
        )
        try await juliet.event("ready")
        let romeo = try ScriptedClient(
            .slixmpp,
            as: .romeo,
            port: tap.port,
            .init(ping: true, send: messages.map { (.juliet, $0) })
        )
        try await juliet.finish()
        try await romeo.finish()
        try await tap.stop()
        try await server.stop()
        return try folder.write(Tap.read(tap.capture), to: "talk.xtap")
    }
}
