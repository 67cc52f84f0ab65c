import NIOCore
import NIOPosix
import TapDiagnosis
import TapTestKit
import Testing

@testable import TapNetwork

/// Tests the classification of connection errors.
struct DialerTests {
    private func fault(_ host: String, port: Int) async -> ConnectionFault? {
        let dialer = Dialer(Endpoint(host: host, port: port), timeout: .seconds(5))
        do {
            let loop = MultiThreadedEventLoopGroup.singleton.any()
            try await dialer.connect(on: loop).get().close().get()
            return nil
        } catch {
            return Dialer.fault(of: error)
        }
    }

    @Test func `a refused connection is reported as refused`() async throws {
        #expect(await fault("127.0.0.1", port: Int(try FreePort.next())) == .refused)
        #expect(await fault("localhost", port: Int(try FreePort.next())) == .refused)
    }

    @Test func `an unknown host name is reported as not found`() async {
        #expect(await fault("nowhere.invalid", port: 5222) == .nameNotFound)
    }

    @Test func `system errors are translated to connection faults`() {
        #expect(Dialer.fault(of: ChannelError.connectTimeout(.seconds(1))) == .timeout)
        #expect(Dialer.fault(of: IOError(errnoCode: 110, reason: "x")) == .timeout)
        #expect(Dialer.fault(of: IOError(errnoCode: 113, reason: "x")) == .unreachable)
    }

    @Test func `of several attempts, the most specific fault is reported`() {
        #expect(Dialer.fault(among: [.nameNotFound, .timeout, .refused]) == .refused)
        #expect(Dialer.fault(among: [.nameNotFound, .unreachable, .timeout]) == .timeout)
        #expect(Dialer.fault(among: [.lookupFailed]) == .lookupFailed)
        #expect(Dialer.fault(among: []) == .unreachable)
    }
}
