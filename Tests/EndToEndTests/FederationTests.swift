import Foundation
import TapTestKit
import Testing

/// Tests of streams between a Prosody and an ejabberd server through two proxies, one for each direction. The servers find
/// the proxies by SRV records, in network and mount namespaces that only the tests use.
@Suite(
    .timeLimit(.minutes(4)),
    .enabled(if: Namespaces.areAllowed, Namespaces.reason),
    .enabled(
        if: TestProgram.areInstalled(.prosody, .ejabberd, .dnsmasq, .openssl, .slixmpp),
        "a server or a tool is missing"
    )
)
struct FederationTests {
    /// The servers, their certificates and the proxies. Prosody requires valid certificates; it serves `a.test`, and two
    /// domains whose own certificates have a fault. ejabberd serves `b.test`, `old.test` with an expired certificate, and
    /// `call.test` with dialback and direct TLS.
    private static let network = """
        set -eu
        cd "$folder"
        ip link set lo up
        mount --make-rprivate /
        echo "nameserver 127.0.0.1" > resolv.conf
        mount --bind resolv.conf /etc/resolv.conf
        echo "127.0.0.1 localhost" > hosts
        mount --bind hosts /etc/hosts
        export HOME="$folder" XDG_STATE_HOME="$folder" XDG_RUNTIME_DIR="$folder"
        mkdir prosody database
        trap 'kill $(jobs -p) 2> /dev/null; sleep 1; kill -9 $(jobs -p) 2> /dev/null; wait' EXIT
        for domain in a.test b.test old.test call.test; do "$tap" ca create --domain $domain --ca-dir ca > /dev/null 2>&1; done
        cat root.pem ca/*/certificate.pem > trust.pem
        for name in expired foreign b old call a; do cat $name.pem $name.key > $name.pair.pem; done

        srv() { echo "--srv-host=_xmpp-server._tcp.$1,$2,5269"; }
        dnsmasq --no-daemon --port=53 --no-resolv --no-hosts --conf-file=/dev/null --pid-file --user= --group= \\
            --listen-address=127.0.0.1 --bind-interfaces --local=/#/ \\
            $(srv a.test prosody.test) $(srv expired.test prosody.test) $(srv foreign.test prosody.test) \\
            $(srv b.test ejabberd.test) $(srv old.test ejabberd.test) --srv-host=_xmpps-server._tcp.call.test,ejabberd.test,5270 \\
            --host-record=ejabberd.test,127.0.0.4 --host-record=prosody.test,127.0.0.5 \\
            --host-record=b.test,127.0.0.1 2> dns.log &

        cat > prosody.lua <<END
        run_as_root = true
        daemonize = false
        pidfile = "$folder/prosody.pid"
        data_path = "$folder/prosody"
        authentication = "anonymous"
        log = { debug = "$folder/prosody.log" }
        interfaces = { "127.0.0.2" }
        modules_enabled = { "saslauth", "tls", "s2s", "s2s_bidi", "s2s_auth_certs" }
        c2s_require_encryption = false
        allow_anonymous_s2s = true
        s2s_require_encryption = true
        ssl = { key = "$folder/a.key", certificate = "$folder/a.pem", cafile = "$folder/trust.pem" }
        s2s_secure_auth = true
        VirtualHost "a.test"
        VirtualHost "expired.test"
            ssl = { key = "$folder/expired.key", certificate = "$folder/expired.pem", cafile = "$folder/trust.pem" }
            modules_enabled = { "dialback" }
        VirtualHost "foreign.test"
            ssl = { key = "$folder/foreign.key", certificate = "$folder/foreign.pem", cafile = "$folder/trust.pem" }
        END
        prosody -F --config prosody.lua > prosody.out 2>&1 &

        cat > ejabberd.yml <<END
        hosts: [b.test, old.test, call.test]
        loglevel: debug
        auth_method: [anonymous]
        anonymous_protocol: both
        allow_multiple_connections: true
        certfiles: ["$folder/b.pair.pem", "$folder/old.pair.pem", "$folder/call.pair.pem"]
        ca_file: "$folder/trust.pem"
        s2s_cafile: "$folder/trust.pem"
        s2s_use_starttls: required
        listen:
          - {port: 5222, ip: "127.0.0.3", module: ejabberd_c2s, starttls: false}
          - {port: 5269, ip: "127.0.0.3", module: ejabberd_s2s_in}
          - {port: 5270, ip: "127.0.0.3", module: ejabberd_s2s_in, tls: true}
        modules: {mod_roster: {}}
        append_host_config:
          call.test:
            modules: {mod_s2s_dialback: {}}
        END
        libraries=$(dirname $(ls -d /usr/lib/*/ejabberd-*/ebin | head -1 | xargs dirname))
        programs=$(for f in /usr/lib/*/ejabberd-*/ebin; do test -e $f/ejabberd.beam && echo $f; done | head -1)
        ERL_LIBS=$libraries erl -noinput -boot no_dot_erlang -pa $programs -mnesia dir "\\"$folder/database\\"" \\
            -ejabberd config "\\"$folder/ejabberd.yml\\"" -ejabberd log_path "\\"$folder/ejabberd.log\\"" -s ejabberd > ejabberd.out 2>&1 &

        proxy() {
            name=$1
            shift
            "$tap" proxy --s2s "$@" --upstream-ca root.pem --ca-dir ca --control none --log off \\
                --capture $name.xtap > $name.out 2>&1 &
            taps="${taps:-} $!"
        }
        proxy to-ejabberd --listen 127.0.0.4:5269=127.0.0.3:5269 --listen 127.0.0.4:5270=127.0.0.3:5270
        proxy to-prosody --listen 127.0.0.5:5269 --upstream 127.0.0.2
        within() { for i in $(seq 1200); do "$@" && return; sleep 0.05; done; echo "no success: $*" >&2; exit 1; }
        within grep -q "listening on" to-ejabberd.out
        within grep -q "listening on" to-prosody.out
        within grep -qs "accepting TCP connections at 127.0.0.3:5269" ejabberd.log
        within grep -qs "accepting TLS connections at 127.0.0.3:5270" ejabberd.log
        within grep -qs "Activated service 's2s'" prosody.log

        """

    /// Sends a message from each domain to another, and prints who got it, or the error.
    private static let talk = """
        import asyncio, slixmpp, sys

        class Client(slixmpp.ClientXMPP):
            def __init__(self, domain, host):
                super().__init__(domain, "", sasl_mech="ANONYMOUS")
                self.ready = asyncio.get_event_loop().create_future()
                self.received = asyncio.Queue()
                self.add_event_handler("session_start", self.started)
                self.add_event_handler("message", self.heard)
                self.add_event_handler("message_error", self.heard)
                self.host = host

            async def begin(self):
                self.connect((self.host, 5222), use_ssl=False, disable_starttls=True)
                await asyncio.wait_for(self.ready, 60)

            async def started(self, _):
                self.send_presence()
                self.ready.set_result(self.boundjid.full)

            def heard(self, message):
                self.received.put_nowait(message)

        async def main():
            hosts = dict.fromkeys(["b.test", "old.test", "call.test"], "127.0.0.3")
            clients = {}
            for pair in sys.argv[1:]:
                source, target = pair.split(">")
                for domain in (source, target):
                    if domain not in clients:
                        clients[domain] = Client(domain, hosts.get(domain, "127.0.0.2"))
                        await clients[domain].begin()
                one, other = clients[source], clients[target]
                one.send_message(other.boundjid.full, "from " + source)
                waits = [asyncio.ensure_future(one.received.get()), asyncio.ensure_future(other.received.get())]
                done, pending = await asyncio.wait(waits, timeout=60, return_when=asyncio.FIRST_COMPLETED)
                for task in pending: task.cancel()
                for task in done:
                    message = task.result()
                    print(pair, message["type"], message["error"]["condition"] if message["type"] == "error" else message["body"], flush=True)

        asyncio.get_event_loop().run_until_complete(main())
        """

    @Test func `Servers are authenticated by certificates and by dialback, and faults are explained`() async throws {
        let path = try #require(XMPPTapBinary.path)
        let folder = try TemporaryFolder()
        let authority = try await TestAuthority()
        try folder.write(try String(contentsOfFile: authority.root, encoding: .utf8), to: "root.pem")
        func issue(_ name: String, _ domain: String, isExpired: Bool = false) async throws {
            let leaf = try await authority.leaf(
                names: ["DNS:\(domain)"],
                subject: domain,
                start: isExpired ? "20250101000000Z" : nil,
                end: isExpired ? "20250601000000Z" : nil
            )
            for (file, ending) in [(leaf.certificate, "pem"), (leaf.key, "key")] {
                try folder.write(try String(contentsOfFile: file, encoding: .utf8), to: "\(name).\(ending)")
            }
        }
        try await issue("a", "a.test")
        try await issue("b", "b.test")
        try await issue("call", "call.test")
        try await issue("expired", "expired.test", isExpired: true)
        try await issue("old", "old.test", isExpired: true)
        try await issue("foreign", "other.test")
        try folder.write(Self.talk, to: "talk.py")
        let script = try folder.write(
            Self.network + """
                pairs="a.test>b.test b.test>a.test foreign.test>b.test expired.test>b.test expired.test>call.test a.test>old.test"
                timeout 150 /usr/bin/python3 talk.py $pairs 2> talk.err || cat talk.err >&2
                kill $taps
                wait $taps
                mkdir posh
                echo '{"fingerprints":[],"expires":604800}' > posh/xmpp-server.json
                /usr/bin/python3 "$files" b.pem b.key posh 443 > posh.port &
                within test -s posh.port
                SSL_CERT_FILE=root.pem "$tap" proxy --s2s --listen 127.0.0.6:5269 --upstream-domain b.test \
                    --ca-dir ca --control none --log off > posh.txt 2>&1 &
                within grep POSH posh.txt
                for name in to-ejabberd to-prosody; do
                    echo "-- $name"
                    "$tap" explain $name.xtap > $name.txt || true
                    grep -E "^  (failed|cause|certificate|ready after|try)" $name.txt
                done
                """,
            to: "script"
        )
        let process = try ToolProcess(
            "/usr/bin/unshare",
            // When the script ends, so do all of its processes.
            ["--net", "--mount-proc", "--pid", "--fork", "--kill-child", "bash", script],
            environment: ["tap": path, "folder": folder.path, "files": HTTPSFiles.script]
        )
        let ending = try await process.ending(within: .seconds(200))
        guard ending == .exited(0) else { throw process.failure("ended with \(ending)") }
        try Documentation.check(.federation, process.lines(of: .standardOutput))
        let untrusted = "not trusted, so xmpptap showed none: it"
        #expect(
            process.lines(of: .standardOutput).map(Self.withoutTimes) == [
                "a.test>b.test normal from a.test", "b.test>a.test normal from b.test",
                "foreign.test>b.test error remote-server-timeout", "expired.test>b.test error remote-server-timeout",
                "expired.test>call.test normal from expired.test", "a.test>old.test error remote-server-timeout",
                "xmpptap: warning: https://b.test/.well-known/posh/xmpp-server.json publishes the certificates of b.test (POSH): "
                    + "servers that check them refuse the certificate that xmpptap shows",
                "-- to-ejabberd", "  ready after T",
                "  failed at sasl: b.test refused SASL EXTERNAL of foreign.test (not-authorized): Failed to get peer "
                    + "certificate; the certificate of foreign.test is \(untrusted) is for other.test, not for "
                    + "foreign.test (RFC 6120 §13.7.2)",
                "  cause: foreign.test, not xmpptap",
                "  certificate of foreign.test: for other.test, issued by CN=Test Authority, valid from T to T",
                "  certificate of b.test: for b.test, issued by CN=Test Authority, valid from T to T",
                "  try: the certificate must name the domain of the JID, not the server's host name",
                "  failed at dialback: b.test did not verify expired.test by dialback (not-authorized); before, SASL EXTERNAL "
                    + "was refused (not-authorized): Failed to get peer certificate; the certificate of expired.test is "
                    + "\(untrusted) expired on T, T ago (RFC 5280 §4.1.2.5)",
                "  cause: expired.test, not xmpptap",
                "  certificate of expired.test: for expired.test, issued by CN=Test Authority, valid from T to T",
                "  certificate of b.test: for b.test, issued by CN=Test Authority, valid from T to T",
                "  try: renew it on the server, and check the clocks of both machines", "  ready after T",
                "  failed at mechanism: a.test refused old.test (not-authorized): Your server's certificate has expired; "
                    + "the certificate of old.test is not valid: it expired on T, T ago (RFC 5280 §4.1.2.5)",
                "  cause: old.test, not xmpptap",
                "  certificate of a.test: for a.test, issued by CN=Test Authority, valid from T to T",
                "  certificate of old.test: for old.test, issued by CN=Test Authority, valid from T to T",
                "  try: renew it on the server, and check the clocks of both machines", "-- to-prosody",
                "  ready after T", "  ready after T",
            ]
        )
    }

    /// Replaces points in time and durations by `T`.
    private static func withoutTimes(_ line: String) -> String {
        line.replacing("\u{A0}", with: " ")
            .replacing(#/\d{4}-\d\d-\d\dT[\d:]+Z|[\d.]+ (ms|s|days)\b/#) { _ in "T" }
    }
}
