internal import HTTPTypes
internal import HummingbirdCore
internal import TapCore
internal import TapNetwork
internal import TapDiagnosis
internal import TapRecord
internal import XMPPCore

// The sessions and their state.
extension Route {
    /// Maximum number of contacts shown of a roster.
    private static let maximumContacts = 1000
    /// Maximum number of requests shown for each direction.
    private static let maximumRequests = 250

    static func sessions(_ context: ControlContext) -> [Route] {
        let sessions = context.sessions
        return [
            Route(method: .get, path: "/sessions", query: ["jid"]) { request in
                let jid = try request.query("jid").map { try Problem.jid($0, "jid") }
                let snapshots = await sessions.snapshots(of: jid)
                return .json { line in
                    let levels = context.log?.spec.sessions ?? [:]
                    line.field("sessions", snapshots) { line, snapshot in snapshot.append(levels, to: &line) }
                }
            },
            Route(method: .get, path: "/sessions/{id}") { request in
                let snapshot = try await sessions.snapshot(of: request.number("id"))
                return .json { snapshot.appendAll(context.log?.spec.sessions ?? [:], to: &$0) }
            },
            Route(method: .get, path: "/sessions/{id}/timeline") { request in
                let steps = try await sessions.inspect(request.number("id")) { session, _ in session.timeline.steps }
                return .json { line in
                    line.field("timeline", steps) { line, step in step.append(to: &line) }
                }
            },
            Route(method: .get, path: "/sessions/{id}/roster") { request in
                let contacts = try await sessions.inspect(request.number("id")) { session, _ in
                    session.contacts(limit: maximumContacts)
                }
                return .json { line in
                    line.field("roster", contacts.sorted { $0.contact < $1.contact }) { line, entry in
                        line.field("jid", entry.contact)
                        line.field("subscription", entry.state.subscription)
                        line.field("state", "\(entry.state)")
                    }
                }
            },
            Route(method: .get, path: "/sessions/{id}/requests") { request in
                let requests = try await sessions.inspect(request.number("id")) { session, now in
                    session.pendingRequests(limit: maximumRequests, at: now)
                }
                return .json { line in
                    line.field("requests", requests) { line, request in
                        line.field("direction", literal: request.direction.name)
                        line.field("sequence", request.sequence)
                        line.field("id", request.id)
                        line.field("to", orNull: request.to)
                        line.field("summary", orNull: request.summary)
                        line.field("age_ns", Int(request.age))
                    }
                }
            },
        ]
    }
}

extension SessionSnapshot {
    /// Appends the fields of the session list; `levels` are the levels of single sessions.
    fileprivate func append(_ levels: [UInt64: Level], to line: inout LineBuffer) {
        line.field("session", number)
        line.field("jid", orNull: info.jid)
        line.field("client", orNull: client)
        line.field("server", orNull: server)
        line.field("domain", orNull: info.domain)
        line.field("began", info.began.time.text)
        line.field("age_ns", Int(age))
        line.field("phase", phase.rawValue)
        line.field("tls") { line in
            line.field("client", orNull: info.clientTLS.map(Self.name))
            line.field("server", orNull: info.serverTLS.map(Self.name))
        }
        for (isSent, counts) in [(true, info.sent), (false, info.received)] {
            line.field(isSent ? "sent" : "received") { line in
                line.field("bytes", counts.bytes)
                line.field("stanzas", counts.stanzas)
            }
        }
        line.field("pending_requests", pendingRequests)
        line.field("held", held)
        line.field("rewrites", rewrites)
        line.field("injected", injected)
        line.field("level", orNull: levels[number]?.name)
    }

    /// Appends the fields of the session list and the counters.
    fileprivate func appendAll(_ levels: [UInt64: Level], to line: inout LineBuffer) {
        append(levels, to: &line)
        line.field("kind", info.kind.rawValue)
        line.field("user", orNull: info.user)
        line.field("mechanism", orNull: info.mechanism)
        line.field("counters") { line in
            for (isSent, counts) in [(true, info.sent), (false, info.received)] {
                line.field(isSent ? "sent" : "received") { line in
                    line.field("bytes", counts.bytes)
                    line.field("iq", counts.iq)
                    line.field("message", counts.message)
                    line.field("presence", counts.presence)
                }
            }
        }
    }

    /// Returns the name of a TLS version as in OpenSSL: `TLSv1.3`.
    private static func name(_ version: UInt16) -> String {
        ClientHello.name(ofVersion: version).replacing(" ", with: "v")
    }
}

extension LoginStep {
    fileprivate func append(to line: inout LineBuffer) {
        line.field("step", name.rawValue)
        line.field("began_ns", Int(began))
        line.field("duration_ns", Int(duration))
        line.field("outcome", outcome.result.rawValue)
        switch outcome {
        case .ok: break
        case .failed(let condition, let reason):
            line.field("condition", orNull: condition)
            line.field("reason", orNull: reason.map { "\($0)" })
        case .skipped(let reason): line.field("reason", "\(reason)")
        }
    }
}
