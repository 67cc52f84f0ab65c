import Foundation
import TapTestKit

/// A recorded conversation of juliet and romeo with slixmpp through a proxy to Prosody, in which juliet receives
/// romeo's messages.
enum RecordedTalk {
    /// Records the conversation.
    ///
    /// - Parameters:
    ///   - options: Juliet's options. By default she adds romeo to her contacts, loses her connection, and resumes her
    ///     session, so that sessions 1 and 2 are hers.
    ///   - arguments: Further arguments of the proxy.
    ///   - host: Further lines for the section of the domain in the server's configuration.
    /// - Returns: The path of the capture.
    static func record(
        _ messages: String...,
        options: [String] = ["--add", Account.romeo.jid, "--resume"],
        arguments: [String] = [],
        host: String = "",
        into folder: TemporaryFolder
    ) async throws -> String {
        let server = try await ProsodyServer(host: host)
        let tap = try await Tap(upstream: server.port, arguments: arguments)
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
