import TapSecurity
import Testing

@testable import xmpptap

struct TrustGuideTests {
    private func text(_ name: String, _ file: String?, isDER: Bool = false) throws -> String {
        try TrustGuide(name: CertificateName(name), file: file, isDER: isDER).lines.joined(separator: "\n")
    }

    @Test func `The trust guide's commands name the exported file`() throws {
        let text = try text("example.org", "/tmp/a.pem")
        #expect(text.contains("client.ca_certs = \"/tmp/a.pem\""))
        #expect(text.contains("SSL_CERT_FILE=/tmp/a.pem go-sendxmpp"))
        #expect(text.contains("-file /tmp/a.pem"))
        #expect(text.contains("the CA for example.org and its subdomains:"))
    }

    @Test(
        "Without a file, or if its name needs quoting, the commands use a default name",
        arguments: [nil, "/tmp/a b.pem", "/tmp/$(x).pem", "/tmp/a\"b", "/tmp/ü.pem", "/tmp/a.pem (deleted)"]
    )
    func usualName(file: String?) throws {
        #expect(try text("example.org", file).contains("SSL_CERT_FILE=xmpptap-example.org.pem go-sendxmpp"))
    }

    @Test func `A DER export lists only programs that read DER, and an address has no subdomains`() throws {
        let text = try text("10.0.0.1", nil, isDER: true)
        #expect(text.contains("-file xmpptap-10.0.0.1.crt"))
        #expect(text.contains("the CA for 10.0.0.1:"))
        #expect(!text.contains("SSL_CERT_FILE") && !text.contains("update-ca-certificates"))
    }
}
