public import TapRecord
public import XMPPCore

/// What the sessions of one event loop share: the parser with its pool of contexts, and the redactor.
///
/// Neither is ever used by two sessions at once, since a loop does one thing at a time.
public final class SessionTools {
    /// Takes items apart for those who must look inside.
    public let parser = StanzaParser()
    /// Reads items for those who only tell what they say.
    var elements = ElementReader()
    /// What their scanners have seen, for that reader.
    let outline = ItemOutline()
    /// Takes secrets out of what is told.
    public let redactor: Redactor

    /// Tools for the sessions of `run` on one event loop.
    public init(run: Run, redaction: RedactionPolicy) {
        redactor = Redactor(policy: redaction, registry: run.secrets)
    }
}
