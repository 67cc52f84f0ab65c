import XMPPCore

// Why a session ended: judged when it does, from what both ends had said and not said before.
extension Session {
    /// A leg has ended; what is known of the ending is kept, the first one counts.
    mutating func judgeEnd(_ direction: Direction, _ end: LegEnd) {
        guard facts.ending == nil else { return }
        if direction == .send && pipes.send.hasClosedStream
            || direction == .recv && pipes.recv.hasClosedStream
        {
            return
        }
        // Once the other side has closed its stream, a connection that just ends is not worth a word of its own.
        if end == .finished, pipes.send.hasClosedStream || pipes.recv.hasClosedStream {
            facts.ending = .clean(by: pipes.send.hasClosedStream ? .send : .recv)
            return
        }
        facts.ending =
            pipes[direction].isOpaque
            ? .undecoded(leg: direction.source, endsWithAlert(direction) ? .finished : end)
            : .unclean(leg: direction.source, end)
        let unheard = unheard(by: direction)
        facts.verdict = unheard?.verdict
        facts.reason = unheard?.words
    }

    /// A stream error has gone by.
    mutating func judge(streamError condition: String, _ element: Element, _ direction: Direction) {
        facts.ending = .error(condition: condition, by: direction)
        switch condition {
        case "conflict":
            facts.verdict = .conflict
            let resource = facts.jid.flatMap { Address($0).resource }.map { tools.redactor.disclose(name: $0) }
            facts.reason = "another login has taken the resource" + (resource.map { " \($0)" } ?? "")
        case "connection-timeout":
            let unheard = unheard(by: direction)
            facts.verdict = unheard?.verdict ?? .idle
            facts.reason = unheard?.words
        case "system-shutdown": facts.verdict = .systemShutdown
        case "policy-violation":
            facts.verdict = .policyViolation
            facts.reason = element.childText("text", .streamErrors).map { tools.redactor.disclose(text: $0) }
        case "see-other-host":
            facts.verdict = .seeOtherHost
            let host = element.childText("see-other-host", .streamErrors) ?? "another host"
            facts.reason = "the client is sent to \(host), where this session leaves the tap"
        default: facts.verdict = .streamError
        }
    }

    /// What the one who sends in this direction has waited for in vain.
    private func unheard(by direction: Direction) -> (verdict: EndingVerdict, words: String)? {
        if let since = requests.oldestPing(direction), now.monotonic - since >= Liveness.patience {
            return (.pingTimeout, "its ping had no answer for \(seconds(since: since))")
        }
        if let since = liveness.waiting(direction), now.monotonic - since >= Liveness.patience {
            return (
                .acknowledgementTimeout, "its request for an acknowledgement had no answer for \(seconds(since: since))"
            )
        }
        if facts.opened != nil, now.monotonic - liveness.lastReceived >= Liveness.silence {
            return (.idle, "after \(seconds(since: liveness.lastReceived)) without a byte in either direction")
        }
        return nil
    }

    private func seconds(since start: Int64) -> String { "\((now.monotonic - start) / 1_000_000_000) s" }

    /// Remembers which client of its account this is, as long as what it has said of itself is known.
    mutating func identifyClient() {
        guard facts.kind == .client, client == nil, let account = facts.jid else { return }
        client =
            ReconnectWatch.Client(
                account: account,
                resource: login?.requestedResource,
                agent: login?.agent,
                remote: remote
            ).key
    }

    /// Tells a client whose sessions drop soon after login, again and again.
    mutating func watchReconnects() {
        guard let client, let opened = facts.opened, facts.isDropped,
            now.monotonic - opened.monotonic <= ReconnectWatch.soon,
            let loop = run.reconnects.noteDrop(of: client, at: now.monotonic)
        else { return }
        let span = loop.span < 1_000_000_000 ? "less than a second" : "\(loop.span / 1_000_000_000) s"
        let advice = facts.verdict == .conflict ? "; configure a different resource for each client" : ""
        note(
            .note,
            .warn,
            code: "reconnect-loop",
            "reconnect loop: \(loop.count) sessions of this client ended within \(ReconnectWatch.soon / 1_000_000_000) s of "
                + "login, in \(span); the last one: \(facts.endingWords)\(advice)"
        )
    }
}
