// What channel binding will come to, told before the login ends (RFC 5802 §6).
extension Session {
    /// TLS is ended here on both legs: from now on each login is told beforehand whether channel binding lets it through.
    public mutating func bind(_ legs: BindingForecast.Legs) { login?.legs = legs }

    /// Looks at what both ends have said so far, and tells what follows from it if that is news.
    mutating func forecastBinding() {
        guard let login, let legs = login.legs, !facts.mechanisms.isEmpty else { return }
        let attempt = login.attempts.last { $0.condition == nil }
        // Before the client has chosen: what would come of the strongest that is offered.
        let strongest =
            facts.mechanisms.first { $0.hasSuffix("-PLUS") } ?? facts.mechanisms.first { $0.hasPrefix("SCRAM-") }
        guard let mechanism = attempt?.mechanism ?? strongest else { return }
        var subject = BindingForecast.Login(
            mechanism: mechanism,
            flag: attempt.flatMap { Self.flag(of: $0) },
            offered: facts.mechanisms,
            bindings: login.offer?.bindings,
            clientTLS: legs.clientTLS,
            serverTLS: legs.serverTLS
        )
        subject.signsMechanisms = attempt?.signsMechanisms ?? false
        subject.signsTLSVersion = attempt?.signsTLSVersion ?? false
        subject.hasSameCertificate = legs.hasSameCertificate
        let forecast = BindingForecast(subject, login.termination?.isEnding == true ? .accounts : legs.strategy)
        guard forecast != login.bindingForecast else { return }
        login.bindingForecast = forecast
        note(
            .note,
            forecast.cause == nil ? .info : .warn,
            code: "channel-binding",
            forecast.message,
            part: .sasl
        )
    }

    private static func flag(of attempt: LoginNotes.Attempt) -> BindingForecast.Flag? {
        switch attempt.bindingFlag {
        case "n": BindingForecast.Flag.none
        case "y": .unsupportedByServer
        case "p": attempt.binding.map { .bound($0) }
        default: nil
        }
    }
}

extension BindingForecast {
    /// The forecast in one line for people.
    public var message: String {
        switch outcome {
        case .works: "channel binding does not stand in the way: \(words)"
        case .fails(let cause): "this login will fail: \(words); try: \(cause.entry.advice)"
        case .depends(let what): "it depends on \(what): \(words)"
        }
    }
}
