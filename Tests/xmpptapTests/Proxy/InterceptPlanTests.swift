import ArgumentParser
import TapCore
import TapNetwork
import TapSecurity
import Testing

@testable import xmpptap

struct InterceptPlanTests {
    static let pin = String(repeating: "0a", count: 32)
    private static let server = Endpoint(host: "example.org", port: 5222)

    /// The plan for these flags, before a server or the built-in one.
    private static func plan(
        _ flags: [String],
        upstream: Endpoint? = server,
        listen: [ListenSpec] = [],
        allowRemote: Bool = false
    ) throws -> InterceptPlan {
        try InterceptPlan(
            InterceptOptions.parse(flags),
            ProxyPlan(listen: listen, upstream: upstream),
            allowRemote: allowRemote
        )
    }

    @Test func `The built-in server has TLS if the proxy terminates TLS, even beside other servers`() throws {
        #expect(try Self.plan([], upstream: nil).securesServer)
        #expect(try !Self.plan(["--tls", "passthrough"], upstream: nil).securesServer)
        #expect(try !Self.plan([]).securesServer)
        let mixed = [ListenSpec(port: 1, upstream: .endpoint(Self.server)), ListenSpec(port: 2)]
        #expect(try Self.plan([], upstream: nil, listen: mixed).securesServer)
        #expect(throws: Never.self) { try Self.plan(["--upstream-ca", "a"], upstream: nil, listen: mixed) }
    }

    @Test(arguments: [
        ["--upstream-ca", "a"], ["--pin", pin], ["--upstream-insecure"], ["--certificate", "a", "--key", "b"],
        ["--upstream-certificate", "a", "--upstream-key", "b"],
    ])
    func `Flags for an upstream server are refused with the built-in one`(flags: [String]) {
        #expect(
            refusal { try Self.plan(flags, upstream: nil) }.hasPrefix(
                "\(flags[0]) has no effect on the built-in server"
            )
        )
        #expect(
            refusal { try Self.plan(flags + ["--tls", "passthrough"]) }.contains(
                "no effect with --tls passthrough; leave it out"
            )
        )
        #expect(throws: Never.self) { try Self.plan(flags) }
    }

    @Test func `Flags are refused without the flag they need, or with one that contradicts them`() {
        #expect(refusal { try Self.plan(["--certificate", "a"]) } == "--certificate needs a private key; add --key")
        #expect(refusal { try Self.plan(["--key", "a"]) } == "--key needs a certificate; add --certificate")
        #expect(
            refusal { try Self.plan(["--upstream-key", "a"]) }
                == "--upstream-key needs a certificate; add --upstream-certificate"
        )
        #expect(
            refusal { try Self.plan(["--upstream-insecure", "--upstream-ca", "a"]) }
                .hasPrefix("--upstream-insecure disables the verification that --upstream-ca is for")
        )
    }

    @Test func `--pin contradicts other ways to trust a server, and --ca is still accepted`()
        throws
    {
        #expect(
            refusal { try Self.plan(["--pin", Self.pin, "--upstream-insecure"]) }
                == "--upstream-insecure disables the verification that --pin is for; leave one out"
        )
        for name in ["--upstream-ca", "--ca"] {
            #expect(
                refusal { try Self.plan(["--pin", Self.pin, name, "a"]) }
                    == "--pin accepts one certificate whoever issued it: --upstream-ca has no effect; leave one out"
            )
        }
        #expect(
            refusal { try Self.plan(["--upstream-ca", "a", "--ca", "b"]) }
                == "--ca is the earlier name of --upstream-ca; leave one out"
        )
        #expect(try InterceptOptions.parse(["--ca", "a"]).trust.verification().trust == .file("a"))
        let pins = try InterceptOptions.parse(["--pin", Self.pin, "--pin", Self.pin.uppercased()]).trust.pin
        #expect(pins.count == 2 && Set(pins).count == 1)
        for text in ["", "0a", Self.pin + "0", String(repeating: "0g", count: 32)] {
            #expect(throws: (any Error).self) { try InterceptOptions.parse(["--pin", text]) }
        }
    }

    @Test func `--allow-remote requires --tls`() {
        let words = refusal { try Self.plan([], allowRemote: true) }
        #expect(words.contains("--tls intercept") && words.contains("--tls passthrough"))
        #expect(throws: Never.self) { try Self.plan(["--tls", "intercept"], allowRemote: true) }
    }

    @Test(arguments: [
        ["--client-tls", "off"], ["--server-tls", "direct"], ["--channel-binding", "strip"],
        ["--client-tls", "required"],
    ])
    func `Flags for TLS termination are refused with --tls passthrough`(flags: [String]) {
        #expect(
            refusal { try Self.plan(flags + ["--tls", "passthrough"]) }.contains(
                "no effect with --tls passthrough; leave it out"
            )
        )
        #expect(throws: Never.self) { try Self.plan(flags) }
    }

    @Test(arguments: [
        (["--client-tls", "off", "--tls", "intercept"], true, "passwords would be sent in clear text"),
        (
            ["--client-tls", "off", "--certificate", "a", "--key", "b"], false,
            "--certificate has no effect with --client-tls off"
        ),
        (["--server-tls", "off", "--upstream-ca", "a"], false, "--upstream-ca has no effect with --server-tls off"),
        (["--server-tls", "off", "--pin", pin], false, "--pin has no effect with --server-tls off"),
        (
            ["--server-tls", "off", "--upstream-insecure"], false,
            "--upstream-insecure has no effect with --server-tls off"
        ),
        (["--server-tls", "off", "--client-tls", "off", "--keylog", "a"], false, "--keylog has no effect"),
    ])
    func `Contradictory TLS modes of the two legs are refused with a remedy`(
        flags: [String],
        remote: Bool,
        words: String
    ) {
        let said = refusal { try Self.plan(flags, allowRemote: remote) }
        #expect(said.contains(words), "\(said)")
    }

    @Test func `--pin and --upstream-ca require TLS on the server leg`() throws {
        func serverTLS(_ flags: [String]) throws -> LegTLS {
            var session = SessionOptions()
            try Self.plan(flags).apply(to: &session)
            return session.serverTLS
        }
        #expect(try serverTLS([]) == .auto)
        #expect(try serverTLS(["--pin", Self.pin]) == .required)
        #expect(try serverTLS(["--upstream-ca", "a"]) == .required)
        #expect(try serverTLS(["--pin", Self.pin, "--server-tls", "direct"]) == .direct)
    }

    @Test func `--server-tls direct is refused for the built-in server`() {
        #expect(refusal { try Self.plan(["--server-tls", "direct"], upstream: nil) }.contains("add --upstream"))
    }

    @Test func `Modes that weaken a login cause a warning at startup`() throws {
        func warnings(_ flags: [String], _ upstream: Endpoint) throws -> [String] {
            let plan = try ProxyPlan(listen: [], upstream: upstream)
            return try InterceptPlan(InterceptOptions.parse(flags), plan, allowRemote: false).warnings(plan)
        }
        #expect(try warnings([], Self.server).isEmpty)
        #expect(try warnings(["--channel-binding", "strip"], Self.server).first?.contains("RFC 5802 §6") == true)
        #expect(
            try warnings(["--server-tls", "off"], Self.server).first?.contains("example.org:5222 in clear") == true
        )
        #expect(try warnings(["--server-tls", "off"], Endpoint(host: "localhost", port: 1)).isEmpty)
    }
}
