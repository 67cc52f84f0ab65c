import TapNetwork
import TapTestKit
import Testing

@testable import xmpptap

struct InvocationTests {
    private let folder = try? TemporaryFolder()

    private func file(_ text: String) throws -> String {
        try #require(folder).write(text, to: "tap.conf")
    }

    @Test func `Flags in a file apply unless the command line has them, too`() throws {
        let path = try file("# a port\n--port 15223\n--json\n")
        let command = try #require(try Invocation.command(["doctor", "--config", path]) as? DoctorCommand)
        #expect(command.listen.port == 15223)
        #expect(command.json)
        let typed = try Invocation.command(["doctor", "--config", path, "--port", "15224"])
        #expect((typed as? DoctorCommand)?.listen.port == 15224)
    }

    @Test func `An invalid line is reported with its file and number`() throws {
        let wrongValue = try file("--fsync\n\n--rotate-keep 10000\n")
        #expect(
            refusal { try Invocation.command(["proxy", "--config", wrongValue]) }
                == "\(wrongValue):3: the value '10000' is invalid for '--rotate-keep <count>': write a whole number "
                + "from 0 to 9999"
        )
        let unknown = try file("--json\n--zzyzx red\n")
        #expect(
            refusal { try Invocation.command(["doctor", "--config", unknown]) }
                == "\(unknown):2: unknown option '--zzyzx'; see 'xmpptap doctor --help'"
        )
        let needless = try file("--json yes")
        #expect(
            refusal { try Invocation.command(["doctor", "--config", needless]) }
                == "\(needless):1: the option '--json' does not take any value, but 'yes' was specified; "
                + "see 'xmpptap doctor --help'"
        )
    }

    @Test func `A mistake on the command line is not attributed to the config file`() throws {
        let path = try file("--json\n")
        #expect(throws: (any Error).self) { try Invocation.command(["doctor", "--prt", "1", "--config", path]) }
        do {
            _ = try Invocation.command(["doctor", "--prt", "1", "--config", path])
        } catch {
            let ending = Ending(error, arguments: ["doctor", "--prt", "1", "--config", path])
            #expect(ending.complaint == "unknown option '--prt'. Did you mean '--port'?")
        }
    }

    @Test func `A missing config file or a folder is a read failure`() throws {
        #expect {
            try Invocation.command(["doctor", "--config", "/nowhere/tap.conf"])
        } throws: {
            $0 as? Failure == .file("--config: cannot read /nowhere/tap.conf: No such file or directory")
        }
        #expect {
            try Invocation.command(["doctor", "--config", "/"])
        } throws: {
            $0 as? Failure == .file("--config: cannot read /: Is a directory")
        }
    }
}
