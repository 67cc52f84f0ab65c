package import TapRecord

/// Figures about the stanzas and sessions of a store or of recordings. Each list begins with its largest entry.
package struct AuditStatistics: Sendable, Hashable {
    /// Two addresses, and the messages between them.
    package struct Pair: Sendable, Hashable {
        /// The addresses, in the order of the alphabet. A room is one of them; the other is then the account of the writer,
        /// or the room's address with the nickname if no session of the writer was seen.
        package var first: String
        package var second: String
        /// Number of messages from the first to the second address, and back.
        package var forth = 0
        package var back = 0
        /// The times of the earliest and the latest message.
        package var times: ClosedRange<Timestamp>

        package var count: Int { forth + back }
    }

    /// The messages of a day in the zone of the user.
    package struct Day: Sendable, Hashable {
        /// `2026-11-21`
        package var name: String
        package var count: Int
    }

    /// The failed logins with the same cause.
    package struct FailedLogins: Sendable, Hashable {
        /// The accounts that the clients named, the most frequent first.
        package struct Account: Sendable, Hashable {
            package var name: String
            package var count: Int
        }

        /// See ``LoginCause``.
        package var cause: String
        package var count = 0
        package var accounts: [Account] = []
        /// The time of the latest session, if it is known, and the finding about it.
        package var last: Timestamp?
        package var finding: String?
    }

    /// The answers to requests with the same payload. The median and the 99th percentile are at most 6.25 % too long.
    package struct Requests: Sendable, Hashable {
        /// `{namespace}name`; nil if neither the request nor the answer has a payload.
        package var payload: String?
        package var count: Int
        /// Times in nanoseconds.
        package var median: Int64
        package var percentile99: Int64
        package var longest: Int64
    }

    /// The requests with the same payload that have no answer.
    package struct Unanswered: Sendable, Hashable {
        /// `{namespace}name`; nil for a request without a payload.
        package var payload: String?
        package var count: Int
        /// The time of the latest request.
        package var last: Timestamp
    }

    /// The stanzas of one kind with payloads of one namespace.
    package struct Size: Sendable, Hashable {
        package var kind: AuditRow.Kind
        /// Empty for stanzas without a payload.
        package var namespace: String
        package var stanzas = 0
        package var bytes = 0
    }

    /// The stanzas of a kind.
    package struct KindSize: Sendable, Hashable {
        package var kind: AuditRow.Kind
        package var stanzas: Int
        package var bytes: Int
    }

    /// Number of stanzas, and of their bytes.
    package var stanzas = 0
    package var bytes = 0
    /// The times at which the first and the last stanza were seen.
    package var times: ClosedRange<Timestamp>?
    /// Number of messages with a body, each counted once, and of the stanzas that are copies of them.
    package var messages = 0
    package var copies = 0
    /// By number of messages.
    package var pairs: [Pair] = []
    /// The messages by hour of the day in the zone of the user, from 0 to 23.
    package var hours = [Int](repeating: 0, count: 24)
    /// In the order of time.
    package var days: [Day] = []
    /// The offsets of the zone at the times of the messages, in seconds east of UTC.
    package var offsets: [Int64] = []
    /// By number of sessions.
    package var failedLogins: [FailedLogins] = []
    /// By the 99th percentile.
    package var requests: [Requests] = []
    /// By number of requests.
    package var unanswered: [Unanswered] = []
    /// By number of bytes.
    package var kinds: [KindSize] = []
    /// By number of bytes.
    package var sizes: [Size] = []
}
