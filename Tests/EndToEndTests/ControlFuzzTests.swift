import Foundation
import TapTestKit
import Testing

/// Tests of the control socket with requests that schemathesis generates from its OpenAPI description.
struct ControlFuzzTests {
    private static let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    /// The folder in which `.ci/packages test` installs schemathesis.
    private static let library = tests.appending(path: "../.build/schemathesis").standardized.path

    @Test(
        .timeLimit(.minutes(3)),
        .enabled(if: FileManager.default.fileExists(atPath: "\(library)/schemathesis"), "schemathesis is missing"),
        .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"),
        .enabled(if: TestProgram.areInstalled(.slixmpp), "slixmpp is missing")
    )
    func `every response matches the OpenAPI description, and the session continues`() async throws {
        let folder = try TemporaryFolder()
        let rules = try folder.write("KIND: message, presence\nLOG=$<@from>\n", to: "a.pfw")
        let scene = try await ControlScene(["--log", "off", "--rules", rules])
        // One client that answers pings, and one that schemathesis may close.
        let answering = try ScriptedClient(
            .slixmpp,
            as: scene.juliet,
            port: scene.port,
            .init(receive: .max),
            options: ["--timeout", "180"]
        )
        try await answering.event("ready")
        let closed = try await PlainClient(scene.juliet, port: scene.port)
        let fuzz = try ToolProcess(
            "/usr/bin/python3",
            [
                Self.tests.appending(path: "TapTestKit/Clients/control_fuzz.py").path, scene.path, Self.library,
                // A 504 is a documented response, and not every well-formed request can be carried out; a 500 is not
                // documented and still fails the test.
                "--exclude-checks", "not_a_server_error,positive_data_acceptance", "--max-examples", "10", "--max-time",
                "45", "--generation-deterministic", "--no-shrink", "--no-color",
                "--request-timeout", "15",
            ]
        )
        let ending = try await fuzz.ending(within: .seconds(120))
        try await answering.kill()
        try await closed.socket.read()
        #expect(closed.socket.received.contains("closed by the operator"))
        #expect(ending == .exited(0), "\(fuzz.text(of: .standardOutput).suffix(6000))")
        #expect(try await scene.isUntouched())
        #expect(try await scene.binary.process.terminate() == .exited(0))
    }
}
