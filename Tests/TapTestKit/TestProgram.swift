import Foundation

/// The servers, clients and tools that end-to-end tests need; `.ci/packages test` installs them.
package enum TestProgram: String, Sendable {
    /// The XMPP server, and its account tool.
    case prosody = "/usr/bin/prosody"
    /// The Python library, found where Debian puts it, so that another Python's does not count.
    case slixmpp = "/usr/lib/python3/dist-packages/slixmpp/__init__.py"
    /// The terminal client.
    case profanity = "/usr/bin/profanity"
    /// The command-line client, which always wants TLS.
    case goSendxmpp = "/usr/bin/go-sendxmpp"
    /// Asks questions of JSON.
    case jq = "/usr/bin/jq"
    /// The XMPP server in Erlang that takes the PROXY protocol; its own start script wants more of a machine.
    case ejabberd = "/usr/sbin/ejabberdctl"
    /// The name server.
    case dnsmasq = "/usr/sbin/dnsmasq"
    /// The proxy that speaks the PROXY protocol.
    case haproxy = "/usr/sbin/haproxy"
    /// Shows packets.
    case tshark = "/usr/bin/tshark"
    /// Makes certificates.
    case openssl = "/usr/bin/openssl"
    /// Records packets.
    case tcpdump = "/usr/bin/tcpdump"
    /// Takes rights from a process.
    case setpriv = "/usr/bin/setpriv"
    /// Edits recordings of packets.
    case editcap = "/usr/bin/editcap"
    /// The shells, beside bash, that have completions.
    case zsh = "/usr/bin/zsh"
    case fish = "/usr/bin/fish"

    /// Whether it is there.
    package var isInstalled: Bool {
        FileManager.default.fileExists(atPath: rawValue)
    }

    /// Whether all of them are there: the condition for `.enabled(if:)`.
    package static func areInstalled(_ programs: TestProgram...) -> Bool {
        programs.allSatisfy(\.isInstalled)
    }
}
