import Foundation
import Glibc
import TapCapture
import TapCore
import TapNetwork
import TapTestKit
import Testing

@testable import xmpptap

struct DoctorTests {
    @Test func `Libraries that are too old stop the program`() {
        #expect(Doctor.libxml2(version: "2.9.14") == .ok("libxml2", "2.9.14"))
        #expect(Doctor.libxml2(version: "2.13.5").outcome == .ok)
        #expect(
            Doctor.libxml2(version: "2.8.0").lines()
                == ["stop  libxml2      2.8.0 is too old; install 2.9 or later (apt-get install libxml2)"]
        )
        #expect(Doctor.openSSL(version: "3.0.19").outcome == .ok)
        #expect(
            Doctor.openSSL(version: "1.1.1w").lines()
                == ["stop  OpenSSL      1.1.1w is too old; install 3.0 or later (apt-get install libssl3)"]
        )
    }

    @Test func `A port in use is reported with a remedy, and an absent family is not a fault`() {
        #expect(Doctor.listening(15222, "127.0.0.1", error: 0) == .ok("port 15222", "free on 127.0.0.1"))
        #expect(
            Doctor.listening(15222, "::1", error: EADDRINUSE).lines()
                == [
                    "stop  port 15222   in use on [::1]; stop the process that uses it (ss -ltnp 'sport = :15222'), "
                        + "or choose another with --listen PORT"
                ]
        )
        #expect(Doctor.listening(15222, "::1", error: EADDRNOTAVAIL).outcome == .note)
        #expect(
            Doctor.listening(80, "127.0.0.1", error: EACCES)
                == .stop("port 80", "cannot listen on 127.0.0.1: Permission denied; choose another with --listen PORT")
        )
    }

    @Test func `A port that a program listens on is detected`() throws {
        let port = try FreePort.next()
        #expect(ListenPort.listen(Int(port), "127.0.0.1") == 0)
        let holder = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try #require(holder >= 0)
        defer { close(holder) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let bound = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(holder, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(bound == 0 && listen(holder, 1) == 0)
        #expect(ListenPort.listen(Int(port), "127.0.0.1") == EADDRINUSE)
        #expect(Doctor.listening(ListenSpec(host: "127.0.0.1", port: Int(port))).map(\.outcome) == [.stop])
        #expect(Doctor.listening(ListenSpec(host: "localhost", port: Int(port))).count == 2)
        // TEST-NET-1: no machine has this address.
        #expect(Doctor.listening(ListenSpec(host: "192.0.2.1", port: Int(port))).map(\.outcome) == [.stop])
    }

    @Test func `A low number of descriptors is reported, and a very low one stops the program`() {
        #expect(Doctor.descriptors(hard: 1_048_576).outcome == .ok)
        #expect(Doctor.descriptors(hard: 512).outcome == .note)
        #expect(
            Doctor.descriptors(hard: 70)
                == .stop("descriptors", "70 allowed, enough for 3 sessions; raise the limit (ulimit -Hn 4096)")
        )
        #expect(Doctor.descriptors(hard: 0).outcome == .stop)
    }

    @Test func `Name resolution and write permissions are checked`() {
        #expect(Doctor.resolver(found: ["127.0.0.1", "::1"]) == .ok("names", "localhost is 127.0.0.1, ::1"))
        #expect(Doctor.resolver(found: []).outcome == .note)
        #expect(Doctor.resolver(found: ["192.0.2.1"]).outcome == .note)
        #expect(Doctor.folder(path: "/tmp", error: 0).outcome == .ok)
        #expect(
            Doctor.folder(path: "/", error: EACCES)
                == .note("logs", "cannot write to /: Permission denied; put logs and captures in another folder")
        )
    }

    @Test func `Without the right to capture packets, the command that grants it is shown`() {
        #expect(Doctor.packets(error: 0).outcome == .ok)
        for error in [EPERM, EACCES] {
            let found = Doctor.packets(error: error)
            #expect(found.outcome == .note && found.text.contains("sudo setcap cap_net_raw=ep "), "\(found)")
            #expect(found.text == CaptureRight.explanation(.notAllowed))
        }
        #expect(Doctor.packets(error: EAFNOSUPPORT).text.hasPrefix("cannot be captured: Address family"))
    }

    @Test func `The check for logs writes to the folder, whatever its permissions are`() throws {
        let folder = try TemporaryFolder()
        #expect(Doctor.writing(in: folder.path) == 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
        #expect(Doctor.writing(in: "/proc") != 0)
        #expect(Doctor.writing(in: folder.path(of: "nowhere")) == ENOENT)
    }

    @Test func `If OpenSSL refuses a digest, the digest is named`() {
        struct Crippled: Cryptography {
            func makeDigest(_ algorithm: HashAlgorithm) throws -> any Digest { throw Failure.reported(.file) }
            func makeHMAC(_ algorithm: HashAlgorithm, key: Span<UInt8>) throws -> any Digest {
                throw Failure.reported(.file)
            }
            func digest(_ algorithm: HashAlgorithm, of bytes: Span<UInt8>) throws -> [UInt8] {
                guard algorithm != .sha1 else { throw Failure.reported(.file) }
                return []
            }
            func hmac(_ algorithm: HashAlgorithm, key: Span<UInt8>, of bytes: Span<UInt8>) throws -> [UInt8] { [] }
            func deriveKey(
                _ algorithm: HashAlgorithm,
                password: Span<UInt8>,
                salt: Span<UInt8>,
                iterations: Int
            ) throws -> [UInt8] { [] }
            func randomBytes(count: Int) throws -> [UInt8] { [] }
            func areEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool { false }
        }
        let finding = Doctor.cryptography(Crippled())
        #expect(finding.outcome == .stop)
        #expect(finding.text == "OpenSSL refuses SHA-1; check /etc/ssl/openssl.cnf")
    }

    @Test func `A check result is printed as a line, or as a JSON object`() {
        let finding = CheckResult.ok("names", "localhost is \"::1\"")
        #expect(finding.lines() == ["ok    names        localhost is \"::1\""])
        #expect(finding.json == #"{"check":"names","outcome":"ok","text":"localhost is \"::1\""}"#)
    }
}
