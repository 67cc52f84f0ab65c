import ArgumentParser
import Glibc
import TapNetwork
import TapTestKit
import Testing

@testable import xmpptap

struct TargetFlagsTests {
    private func options(_ arguments: String...) throws -> ProxyOptions { try ProxyOptions.parse(arguments) }

    @Test func `The flags for targets need a port on which clients name them`() throws {
        #expect(
            refusal { try options("--relay-others").targetOptions() }
                == "--relay-others needs --socks or --transparent; add one"
        )
        #expect(
            refusal { try options("--socks-users", "a", "--transparent", "1").targetOptions() }
                == "--socks-users needs --socks; add it"
        )
        #expect(try options("--transparent", "0.0.0.0:1", "--relay-others").targetOptions().relaysOthers)
        #expect(try options("--socks", "1080").targetOptions().users == nil)
    }

    @Test func `A port that other machines can reach needs users`() throws {
        #expect(
            refusal { try options("--socks", "0.0.0.0:1080").targetOptions() }
                == "--socks 0.0.0.0:1080: clients on other machines must log in; add --socks-users"
        )
        for host in ["127.0.0.1", "localhost", "[::1]"] {
            #expect(try options("--socks", "\(host):1080").targetOptions().users == nil)
        }
    }

    @Test func `A file of users that others can read, or that has a mistake, is refused with its line`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("juliet:secret\n", to: "users")
        func message(_ mode: mode_t) throws -> String {
            try #require(chmod(file, mode) == 0)
            do {
                let users = try options("--socks", "0.0.0.0:1", "--socks-users", file).targetOptions().users
                return users == nil ? "no users" : ""
            } catch let failure as Failure {
                return failure.message
            }
        }
        #expect(try message(0o644) == "other users can read --socks-users \(file); run 'chmod 600 \(file)'")
        #expect(try message(0o600).isEmpty)
        _ = try folder.write("# a\njuliet\n", to: "users")
        #expect(try message(0o600) == "--socks-users: \(file):2: write USER:PASSWORD, each with 1 to 255 bytes")
    }
}
