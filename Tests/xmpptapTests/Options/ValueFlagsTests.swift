import ArgumentParser
import TapTestKit
import Testing

@testable import xmpptap

struct ValueFlagsTests {
    @Test func `The list of flags with a value matches the help`() {
        var single: Set<String> = []
        var repeatable: Set<String> = []
        let commands = XMPPTap.configuration.subcommands
        let inner = commands.flatMap { $0.configuration.subcommands }
        for command in commands + inner {
            // A long flag has its own line, and its help is on the next one.
            let help = XMPPTap.helpMessage(for: command, columns: 10_000)
            for found in help.matches(of: /\n  (?:-[A-Za-z], )?(--[a-z-]+) <[^ \n]+>\s+([^\n]*)/) {
                let isRepeatable = found.2.contains("repeatable")
                if isRepeatable { repeatable.insert(String(found.1)) } else { single.insert(String(found.1)) }
            }
        }
        // The earlier name of --upstream-ca is not in the help.
        #expect(single.subtracting(repeatable).union(["--ca"]) == ValueFlags.single)
        #expect(repeatable == ValueFlags.repeatable)
    }

    @Test(
        "A value that begins with a hyphen is joined to a flag that takes a value",
        arguments: [
            (["proxy", "--capture", "-"], ["proxy", "--capture=-"]), (["--grace", "-1", "x"], ["--grace=-1", "x"]),
            (["read", "--json", "-"], ["read", "--json", "-"]), (["--log", "--json"], ["--log", "--json"]),
            (["--", "--capture", "-"], ["--", "--capture", "-"]), (["--capture"], ["--capture"]),
            (["--log-to", "-,verbose"], ["--log-to", "-,verbose"]),
        ]
    )
    func tied(_ arguments: [String], _ expected: [String]) { #expect(ValueFlags.tied(arguments) == expected) }

    @Test func `A flag with a single value is refused if given twice, typed or in a file`() throws {
        let twice = ["proxy", "--upstream", "a.example:1", "--upstream=b.example:2"]
        #expect(refusal { try Invocation.command(twice) } == "--upstream given more than once")
        #expect(throws: Never.self) { try Invocation.command(["proxy", "--listen", "1", "--listen", "2"]) }
        let folder = try TemporaryFolder()
        let path = try folder.write("--upstream a.example:1\n# another\n--upstream b.example:2\n", to: "tap.conf")
        #expect(
            refusal { try Invocation.command(["proxy", "--config", path]) }
                == "\(path):3: --upstream given more than once"
        )
        // Typed, it beats all lines of the file.
        #expect(throws: Never.self) {
            try Invocation.command(["proxy", "--config", path, "--upstream", "c.example:3"])
        }
    }

    @Test func `The mistake in a value with a leading hyphen is reported`() throws {
        func complaint(_ arguments: String...) -> String {
            do {
                _ = try Invocation.command(arguments)
                return ""
            } catch {
                return Ending(error, arguments: arguments).complaint
            }
        }
        #expect(
            complaint("proxy", "--grace", "-1")
                == "the value '-1' is invalid for '--grace <seconds>': write a whole number from 0 to 3600"
        )
        let command = try #require(try Invocation.command(["proxy", "--capture", "-"]) as? ProxyCommand)
        #expect(command.logs.capture == "-")
    }
}
