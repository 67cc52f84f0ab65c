internal import NIOHTTP1
internal import XMPPCore

/// The files by which clients find the WebSocket of a domain (XEP-0156).
enum HostMeta {
    /// Returns the answer to a request for one of the files, with this proxy's own address, and its type; nil for other
    /// requests.
    static func answer(_ head: HTTPRequestHead, isSecure: Bool, _ path: String?) -> (text: String, type: String)? {
        guard head.method == .GET, let host = head.headers.first(name: "host") else { return nil }
        let link = "\(isSecure ? "wss" : "ws")://\(host)\(path ?? "/xmpp-websocket")"
        let relation = "urn:xmpp:alt-connections:websocket"
        switch WebAccess.path(head) {
        case "/.well-known/host-meta":
            let xml = XMLWriter.bytes {
                $0.element("XRD", xmlns: "http://docs.oasis-open.org/ns/xri/xrd-1.0") {
                    $0.element("Link", ["rel": relation, "href": link])
                }
            }
            return (String(decoding: xml, as: UTF8.self), "application/xrd+xml")
        case "/.well-known/host-meta.json":
            let text = link.filter { $0 != "\"" && $0 != "\\" }
            return ("{\"links\":[{\"rel\":\"\(relation)\",\"href\":\"\(text)\"}]}", "application/json")
        default: return nil
        }
    }
}
