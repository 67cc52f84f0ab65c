import Foundation
import TapTestKit
import Testing

/// Tests of a proxy and `doctor` with an expired authority in `--ca-dir`.
@Suite(
    .timeLimit(.minutes(1)),
    .enabled(if: TestProgram.areInstalled(.prosody, .openssl), "Prosody or openssl is missing")
) struct AuthorityExpiryTests {
    /// Signs the authority's certificate again with the same key, for a month in the past.
    private func age(_ certificate: String, in folder: TemporaryFolder) async throws {
        let key = URL(filePath: certificate).deletingLastPathComponent().appending(path: "key.pem").path
        try folder.write("", to: "index.txt")
        try folder.write("01", to: "serial")
        let config = try folder.write(
            """
            [ca]
            default_ca = own
            [own]
            dir = \(folder.path)
            database = \(folder.path)/index.txt
            serial = \(folder.path)/serial
            new_certs_dir = \(folder.path)
            default_md = sha256
            policy = any
            preserve = yes
            copy_extensions = copyall
            [any]
            commonName = optional
            organizationName = optional
            """,
            to: "config"
        )
        let (request, aged) = (folder.path(of: "request.pem"), folder.path(of: "aged.pem"))
        for arguments in [
            [
                "x509", "-x509toreq", "-in", certificate, "-signkey", key, "-copy_extensions", "copyall", "-out",
                request,
            ],
            [
                "ca", "-batch", "-notext", "-config", config, "-selfsign", "-keyfile", key, "-in", request,
                "-startdate",
                "20250101000000Z", "-enddate", "20250201000000Z", "-out", aged,
            ],
        ] {
            let openssl = try ToolProcess(TestProgram.openssl.rawValue, arguments)
            guard try await openssl.ending() == .exited(0) else { throw openssl.failure("failed") }
        }
        // Overwrites the file in place to keep its permissions.
        try folder.read("aged.pem").write(toFile: certificate, atomically: false, encoding: .utf8)
    }

    @Test func `doctor and a starting proxy report an authority only after it has expired`() async throws {
        let own = try await InterceptAuthority()
        let folder = try TemporaryFolder()
        let doctor = ["doctor"] + own.arguments.suffix(2)
        let sound = try await XMPPTapBinary.run(doctor)
        #expect(!sound.output.contains("expired"), "\(sound.output)")
        let listener = try RawListener()
        let before = try await Tap(upstream: listener.port, arguments: own.arguments)
        try await before.stop()
        #expect(!before.binary.process.text(of: .standardError).contains("warning"))
        try await age(own.certificate, in: folder)
        let after = try await Tap(upstream: listener.port, arguments: own.arguments)
        try await after.stop()
        let words =
            "the certificate authority for localhost expired on 2025-02-01; recreate it with 'xmpptap ca "
            + "remove --domain localhost --ca-dir \(try #require(own.arguments.last))'"
        let told = after.binary.process.lines(of: .standardError)
        #expect(told.filter { $0.contains("warning: \(words)") }.count == 1, "\(told)")
        let warned = try await XMPPTapBinary.run(doctor)
        #expect(warned.output.contains(words), "\(warned.output)")
    }

    @Test func `clients get no certificate from an expired authority, and each message has the remedy`() async throws {
        let scene = try await InterceptScene()
        let folder = try TemporaryFolder()
        let whole = Tap.read(scene.authority)
        try await age(scene.authority, in: folder)
        for way in [["--starttls"], []] {
            let info = try await TLSPeer.connect(
                port: way.isEmpty ? scene.directPort : scene.tap.port,
                trusting: scene.authority,
                ["--sni", "localhost"] + way
            )
            #expect(info.names == nil && info.error != nil, "\(info)")
        }
        // The suggested remedy works without a restart of the proxy.
        try whole.write(toFile: scene.authority, atomically: false, encoding: .utf8)
        let renewed = try await TLSPeer.connect(
            port: scene.directPort,
            trusting: scene.authority,
            ["--sni", "localhost"]
        )
        #expect(renewed.mechanisms == true, "\(renewed)")
        try await scene.stop()
        let records = try scene.tap.records()
        let own = URL(filePath: scene.authority).deletingLastPathComponent()
        let flag = " --ca-dir \(own.deletingLastPathComponent().path)"
        let cause = "expired on 2025-02-01; "
        let way =
            "recreate it with 'xmpptap ca remove --domain localhost\(flag)' and 'xmpptap ca create --domain "
            + "localhost\(flag)', and trust the new one"
        for session: UInt64 in 1...2 {
            let faults = records.filter { $0.session == session && $0.kind == "error" }
            #expect(faults.map(\.code) == ["no-certificate"])
            #expect(faults.first?.message?.contains(cause + way) == true, "\(faults.first?.message ?? "")")
            let diagnosis = records.first { $0.session == session && $0.code == "login-failed" }
            #expect(diagnosis?.details?.cause == "ended-by-xmpptap" && diagnosis?.details?.proxyIsCause == true)
            let words = diagnosis?.message ?? ""
            #expect(words.contains(cause) && words.hasSuffix("; try: \(way)"), "\(words)")
        }
    }
}
