import TapCore
import TapSecurity
import Testing
import XMPPCore

@testable import TapNetwork

/// Tests which of the offered logins is chosen. The choice of the mechanism has separate tests.
@Suite struct LoginChoiceTests {
    private typealias Client = ClientHarness

    private func choice(_ features: String, _ channel: ClientChannel = ClientHarness.secure) throws -> LoginChoice? {
        let client = try Client(.direct, channel: channel)
        client.hear(Client.header + Client.features(features))
        let offered = try #require(client.offered)
        return LoginChoice.strongest(of: offered, on: channel)
    }

    private static var tls12: ClientChannel {
        var channel = ClientChannel()
        channel.tlsVersion = 0x0303
        channel.bindings = [
            ChannelBinding(type: "tls-exporter", data: [1]), ChannelBinding(type: "tls-unique", data: [2]),
            ChannelBinding(type: "tls-server-end-point", data: [3]),
        ]
        return channel
    }

    private func words(_ choice: LoginChoice?) -> String {
        guard let choice else { return "none" }
        return switch choice.binding {
        case .unsupported: "\(choice.mechanism) n"
        case .notOffered: "\(choice.mechanism) y"
        case .bound(let binding): "\(choice.mechanism) \(binding.type)"
        }
    }

    @Test func `A mechanism with channel binding is preferred, then the strongest hash`() throws {
        let offer = Client.mechanisms("PLAIN", "SCRAM-SHA-1-PLUS", "SCRAM-SHA-512", "SCRAM-SHA-256")
        #expect(
            words(try choice(offer + Client.bindings("tls-server-end-point")))
                == "SCRAM-SHA-1-PLUS tls-server-end-point"
        )
        #expect(words(try choice(Client.mechanisms("DIGEST-MD5"))) == "none")
    }

    @Test func `Without a list of binding types, tls-unique is used if the TLS version has it`() throws {
        let offer = Client.mechanisms("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256")
        #expect(words(try choice(offer, Self.tls12)) == "SCRAM-SHA-256-PLUS tls-unique")
        // TLS 1.3 has no tls-unique. With the flag "y", the server would have to refuse the login, because it does
        // support channel binding.
        let unbound = try choice(offer)
        #expect(words(unbound) == "SCRAM-SHA-256 n")
        #expect(unbound?.remark?.contains("XEP-0440") == true)
    }

    @Test func `A client that cannot bind uses gs2 flag n`() throws {
        #expect(words(try choice(Client.mechanisms("SCRAM-SHA-1"), ClientChannel())) == "SCRAM-SHA-1 n")
        #expect(words(try choice(Client.mechanisms("PLAIN"), ClientChannel())) == "none")
    }

    @Test func `The login offer has only the mechanisms of the SASL profile in use`() throws {
        let both = Client.mechanisms("PLAIN") + Client.mechanisms2("SCRAM-SHA-1") + Client.bindings()
        let choice = try choice(both)
        #expect(choice?.profile == .sasl2(bindsInline: false))
        #expect(choice?.offer == LoginOffer(mechanisms: ["SCRAM-SHA-1"], bindingTypes: [], tlsVersion: 0x0304))
    }
}
