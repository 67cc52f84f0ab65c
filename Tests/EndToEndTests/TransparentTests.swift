import Foundation
import TapTestKit
import Testing

/// Whether this machine lets the tests make network namespaces and rules.
enum Namespaces {
    static let reason: Comment = "unshare, ip or nft is missing, or the system does not permit network namespaces"

    static let areAllowed: Bool = {
        let check = Process()
        check.executableURL = URL(filePath: "/usr/bin/unshare")
        check.arguments = [
            "--net", "sh", "-c",
            "ip link add name a0 type veth peer name b0 && nft add table inet a && nft add chain inet a b "
                + "'{ type nat hook output priority -100; }' && command -v setpriv nsenter python3",
        ]
        (check.standardOutput, check.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        guard (try? check.run()) != nil else { return false }
        check.waitUntilExit()
        return check.terminationStatus == 0
    }()
}

/// Tests of connections that nftables redirects, with the rules of the manual, in network namespaces that only the test
/// uses.
@Suite(.timeLimit(.minutes(2)), .enabled(if: Namespaces.areAllowed, Namespaces.reason))
struct TransparentTests {
    /// Returns the commands of the block in the manual that has this word.
    private static func rules(_ word: String) throws -> String {
        let page = try #require(Documentation.pages.first { $0.name == "transparent.md" })
        let block = try #require(
            page.transcripts.first { $0.lines.contains { $0.contains("add rule") && $0.contains(word) } }
        )
        return block.lines.joined(separator: "\n")
    }

    /// A gateway with the interface `wlan0`, a phone behind it, and a server that answers each connection with its
    /// address. `phone` runs a command on the phone.
    private static let network = """
        set -eu
        ip link set lo up
        ip link add name wlan0 type veth peer name phone
        unshare --net sleep 100 &
        phone=$!
        trap 'kill $(jobs -p) || true' EXIT
        while [ "$(readlink /proc/$phone/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do sleep 0.05; done
        ip link set phone netns $phone
        ip addr add 10.77.1.1/24 dev wlan0
        ip addr add fd77:1::1/64 dev wlan0 nodad
        ip link set wlan0 up
        ip addr add 10.77.2.2/32 dev lo
        ip addr add fd77:2::2/128 dev lo nodad
        phone() { nsenter --target $phone --net "$@"; }
        phone ip link set lo up
        phone ip addr add 10.77.1.2/24 dev phone
        phone ip addr add fd77:1::2/64 dev phone nodad
        phone ip link set phone up
        phone ip route add default via 10.77.1.1
        phone ip route add default via fd77:1::1
        python3 -c '
        import socket, threading
        def serve(family, host):
            server = socket.socket(family)
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind((host, 5222))
            server.listen()
            while True:
                peer = server.accept()[0]
                peer.recv(9)
                peer.sendall(host.encode())
                peer.close()
        for family, host in (socket.AF_INET, "10.77.2.2"), (socket.AF_INET6, "fd77:2::2"):
            threading.Thread(target=serve, args=(family, host)).start()
        ' &
        connect='
        import socket, sys
        try:
            peer = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
            peer.sendall(b"<a/>12345")
            print(sys.argv[1], sys.argv[2], peer.recv(99).decode(), flush=True)
        except ConnectionError:
            print(sys.argv[1], sys.argv[2], "reset", flush=True)
        '
        wait_for_tap() { until grep -q "listening on" "$folder/ready"; do sleep 0.05; done; }

        """

    private func run(_ script: String, in folder: TemporaryFolder) async throws -> [String] {
        let path = try #require(XMPPTapBinary.path)
        let file = try folder.write(Self.network + script, to: "script")
        let process = try ToolProcess(
            "/usr/bin/unshare",
            ["--net", "bash", file],
            environment: ["tap": path, "folder": folder.path, "HOME": folder.path, "XDG_STATE_HOME": folder.path]
        )
        let ending = try await process.ending()
        guard ending == .exited(0) else { throw process.failure("ended with \(ending)") }
        return process.lines(of: .standardOutput)
    }

    @Test func `Connections of a phone reach their destination, listed servers only, with IPv4 and IPv6`() async throws
    {
        let folder = try TemporaryFolder()
        let lines = try await run(
            """
            \(try Self.rules("wlan0"))
            "$tap" proxy --transparent 0.0.0.0:15223=10.77.2.2:5222 --transparent '[::]:15223=[fd77:2::2]:5222' \\
                --allow-remote --tls passthrough --control none --log-to "$folder/tap.json,format=json" > "$folder/out" 2> "$folder/ready" &
            tap=$!
            wait_for_tap
            for target in "10.77.2.2 5222" "fd77:2::2 5222" "10.77.2.2 5223" "10.77.1.1 15223"; do
                phone python3 -c "$connect" $target
            done
            kill $tap
            wait $tap
            """,
            in: folder
        )
        #expect(
            lines == [
                "10.77.2.2 5222 10.77.2.2", "fd77:2::2 5222 fd77:2::2", "10.77.2.2 5223 reset", "10.77.1.1 15223 reset",
            ]
        )
        let records = try LogRecord.all(in: folder.path(of: "tap.json"))
        let began = records.filter { $0.code == "session-began" }
        #expect(began.compactMap(\.details?.target) == ["10.77.2.2:5222", "[fd77:2::2]:5222"])
        #expect(began.allSatisfy { $0.details?.request == "redirect" })
        #expect(began.first?.message?.hasPrefix("10.77.1.2:") == true)
        let refused = try #require(records.first { $0.code == "target-not-listed" })
        #expect(refused.message?.contains("redirection to 10.77.2.2:5223: it does not belong to the listed") == true)
        let loop = try #require(records.first { $0.code == "target-loop" })
        #expect(loop.message?.hasSuffix("redirection to 10.77.1.1:15223: xmpptap itself listens there") == true)
    }

    @Test func `Connections of this machine are redirected, except those of xmpptap's user`() async throws {
        let folder = try TemporaryFolder()
        let lines = try await run(
            """
            \(try Self.rules("skuid").replacing("!= xmpptap", with: "!= 65534"))
            touch "$folder/tap.json"
            chown -R 65534 "$folder"
            setpriv --reuid 65534 --clear-groups "$tap" proxy --transparent 15223=10.77.2.2:5222 --tls passthrough \\
                --control none --log-to "$folder/tap.json,format=json" > "$folder/out" 2> "$folder/ready" &
            tap=$!
            wait_for_tap
            python3 -c "$connect" 10.77.2.2 5222
            python3 -c "$connect" 10.77.2.2 5223
            kill $tap
            wait $tap
            """,
            in: folder
        )
        #expect(lines == ["10.77.2.2 5222 10.77.2.2", "10.77.2.2 5223 reset"])
        let records = try LogRecord.all(in: folder.path(of: "tap.json"))
        #expect(records.first { $0.code == "session-began" }?.details?.target == "10.77.2.2:5222")
        #expect(!records.contains { $0.code == "target-loop" })
    }
    @Test func `A loop through rules that do not exclude xmpptap ends with a warning`() async throws {
        let folder = try TemporaryFolder()
        let lines = try await run(
            """
            \(try Self.rules("skuid").replacing("!= xmpptap", with: "!= 65534"))
            "$tap" proxy --transparent 15223=10.77.2.2:5222 --tls passthrough --control none \\
                --log-to "$folder/tap.json,format=json" > "$folder/out" 2> "$folder/ready" &
            tap=$!
            wait_for_tap
            for round in 1 2 3; do python3 -c "$connect" 10.77.2.2 5222; done
            kill $tap
            wait $tap
            """,
            in: folder
        )
        #expect(lines.count == 3 && !lines.contains { $0.hasSuffix("10.77.2.2") }, "\(lines)")
        let records = try LogRecord.all(in: folder.path(of: "tap.json"))
        let loops = records.filter { $0.code == "target-loop" }
        #expect(loops.count >= 3 && loops.allSatisfy { $0.message?.contains("exclude its user") == true })
        #expect(records.count { $0.code == "session-began" } < 30)
    }
}
