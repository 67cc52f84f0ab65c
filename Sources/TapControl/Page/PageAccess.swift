internal import HTTPTypes
internal import TapNetwork

/// Decides which requests the page's port answers.
///
/// A port of this machine is within reach of every web page that its users open, of other users of the machine, and of
/// clients of the proxy itself. So each request has to name this port as its host (against DNS rebinding), must not come
/// from a page of another origin, and needs the token of the run if it reads data.
struct PageAccess: Sendable {
    /// The values of `Host` that are answered.
    private let hosts: Set<String>
    private let token: String
    /// The paths of the page, its style and its scripts, which contain no data and need no token.
    private let publicPaths: Set<String>

    /// - Parameters:
    ///   - address: `HOST:PORT` of the port.
    ///   - token: The secret of the run.
    ///   - publicPaths: The paths that need no token.
    init(address: String, token: String, publicPaths: Set<String>) {
        let port = address.split(separator: ":").last ?? ""
        var hosts: Set = [address, "127.0.0.1:\(port)", "[::1]:\(port)", "localhost:\(port)"]
        if port == "80" { hosts.formUnion(hosts.map { String($0.dropLast(3)) }) }
        self.hosts = hosts
        self.token = token
        self.publicPaths = publicPaths
    }

    /// Throws a problem if a request must not be answered.
    func check(_ head: HTTPRequest) throws(Problem) {
        guard let host = head.authority?.lowercased(), hosts.contains(host) else {
            throw .forbidden("this port answers requests for \(hosts.sorted().joined(separator: ", ")) only")
        }
        for origin in head.headerFields[values: .origin] where origin.lowercased() != "http://\(host)" {
            throw .forbidden("requests of pages of another origin are not answered")
        }
        if let site = HTTPField.Name("Sec-Fetch-Site") {
            for value in head.headerFields[values: site] where value != "same-origin" && value != "none" {
                throw .forbidden("requests of other sites are not answered; type or paste the address")
            }
        }
        guard !Self.isWrite(head) || Self.isJSON(head) else {
            throw .forbidden("a request that changes something needs Content-Type: application/json")
        }
        let path = head.path?.prefix { $0 != "?" } ?? ""
        guard publicPaths.contains(String(path)) || isAuthorized(head.headerFields[.authorization]) else {
            throw .forbidden("the token is missing or wrong; open the address that xmpptap has printed")
        }
    }

    /// Returns whether a request can change something: it has a body, or a method that usually has one.
    private static func isWrite(_ head: HTTPRequest) -> Bool {
        switch head.method {
        case .get, .head, .options: return false
        case .delete: break
        default: return true
        }
        // A length that cannot be read counts as a body.
        let length = head.headerFields[.contentLength].map { Int($0) ?? 1 } ?? 0
        return length > 0 || head.headerFields[.transferEncoding] != nil
    }

    /// Returns whether the body is JSON. Forms of other sites cannot send this type without permission.
    private static func isJSON(_ head: HTTPRequest) -> Bool {
        let type = head.headerFields[.contentType]?.prefix { $0 != ";" } ?? ""
        return type.lowercased().filter { $0 != " " && $0 != "\t" } == "application/json"
    }

    /// Compares the token in a time that does not depend on its contents.
    private func isAuthorized(_ field: String?) -> Bool {
        let expected = Array("Bearer \(token)".utf8)
        let given = Array((field ?? "").utf8)
        guard given.count == expected.count else { return false }
        return zip(given, expected).reduce(into: UInt8(0)) { $0 |= $1.0 ^ $1.1 } == 0
    }

    /// Fields of every response: nothing is loaded from elsewhere, embedded elsewhere, or kept.
    static let headers: HTTPFields = {
        var headers: HTTPFields = [:]
        let fields = [
            (
                "Content-Security-Policy",
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
                    + "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
                    + "trusted-types 'none'"
            ),
            ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"), ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cache-Control", "no-store"),
        ]
        for (name, value) in fields { if let name = HTTPField.Name(name) { headers[name] = value } }
        return headers
    }()
}

extension Problem {
    /// Creates the problem of a request that the page's port refuses.
    static func forbidden(_ detail: String) -> Problem { Problem(.forbidden, detail) }
}
