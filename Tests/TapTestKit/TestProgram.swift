import Foundation

/// The servers, clients and tools that end-to-end tests need; `.ci/packages test` installs them.
package enum TestProgram: String, Sendable {
    /// The XMPP server.
    case prosody = "/usr/bin/prosody"
    /// The Python library, at Debian's path, so that libraries of other Python installations do not count.
    case slixmpp = "/usr/lib/python3/dist-packages/slixmpp/__init__.py"
    /// The terminal client.
    case profanity = "/usr/bin/profanity"
    /// The command-line client, which always requires TLS.
    case goSendxmpp = "/usr/bin/go-sendxmpp"
    /// The query tool for JSON.
    case jq = "/usr/bin/jq"
    /// The XMPP server in Erlang, which supports the PROXY protocol. The tests do not use its start script.
    case ejabberd = "/usr/sbin/ejabberdctl"
    /// The name server.
    case dnsmasq = "/usr/sbin/dnsmasq"
    /// The proxy that supports the PROXY protocol.
    case haproxy = "/usr/sbin/haproxy"
    /// The database for audit stores of many taps.
    case clickHouse = "/usr/sbin/clickhouse-server"
    /// The library of web clients, which runs in Node.js.
    case strophe = "/usr/share/javascript/strophe/strophe.js"
    /// The packet analyser.
    case tshark = "/usr/bin/tshark"
    /// The tool for keys and certificates.
    case openssl = "/usr/bin/openssl"
    /// The packet recorder.
    case tcpdump = "/usr/bin/tcpdump"
    /// The tool that drops privileges.
    case setpriv = "/usr/bin/setpriv"
    /// The file system that shows a folder at another place.
    case bindfs = "/usr/bin/bindfs"
    /// The editor for packet captures.
    case editcap = "/usr/bin/editcap"
    /// The shells besides bash for which completions exist.
    case zsh = "/usr/bin/zsh"
    case fish = "/usr/bin/fish"
    /// The browsers.
    case chromium = "/usr/bin/chromium"
    case firefox = "/usr/bin/firefox-esr"
    /// The library of Node.js for WebSockets, by which tests drive Firefox.
    case nodeWebSocket = "/usr/share/nodejs/ws/index.js"
    /// The runtime for scripts of tests.
    case node = "/usr/bin/node"
    /// The compiler that checks the types of the page's scripts.
    case tsc = "/usr/bin/tsc"

    /// Whether the program is installed.
    package var isInstalled: Bool {
        FileManager.default.fileExists(atPath: rawValue)
    }

    /// Returns whether all programs are installed: the condition for `.enabled(if:)`.
    package static func areInstalled(_ programs: TestProgram...) -> Bool {
        programs.allSatisfy(\.isInstalled)
    }
}
