/// A group of divergences with one cause: the first divergence, equal ones in other sessions or copies, and divergences
/// that follow from it.
package struct DivergenceCause: Sendable {
    /// The cause as a human-readable clause: `localhost no longer offers urn:xmpp:mam:2`.
    package let title: String
    /// The first divergence.
    package let first: Divergence
    /// The sessions with the first divergence or an equal one, in order, without duplicates.
    package internal(set) var sessions: [String]
    /// Number of divergences that are equal apart from their session, including the first.
    package internal(set) var count = 1
    /// The divergences that follow from the first, in order.
    package internal(set) var followed: [Divergence]
    /// The namespaces and addresses that the server no longer provides because of this cause.
    private var lost: Set<String>

    private init(_ first: Divergence, in session: String) {
        (title, self.first, sessions, followed) = (first.title, first, [session], first.followed)
        lost = Set(first.subject?.lost ?? [])
    }

    /// Returns whether the first divergence, or one that follows from it, belongs to one of the classes.
    package func isOf(_ classes: Set<Divergence.Class>) -> Bool {
        classes.contains(first.divergenceClass) || followed.contains { classes.contains($0.divergenceClass) }
    }

    /// Groups divergences by their causes.
    ///
    /// - Parameters:
    ///   - cases: The divergences of each session, in order; optional ones are left out.
    ///   - failing: The classes that make a comparison fail: causes with these come first.
    static func causes(of cases: [DivergenceReport.Case], failing: Set<Divergence.Class>) -> [DivergenceCause] {
        struct Key: Hashable {
            let code: Divergence.Code
            let divergenceClass: Divergence.Class
            let title: String
            let places: [String]
        }
        var all: [(divergence: Divergence, session: String)] = []
        for entry in cases {
            for divergence in entry.divergences where divergence.divergenceClass != .optional {
                all.append((divergence, entry.name))
            }
        }
        // Sort the divergences of all sessions by time, because a session may depend on earlier actions of another one.
        let order = all.indices.sorted { (all[$0].divergence.position, $0) < (all[$1].divergence.position, $1) }
        var causes: [DivergenceCause] = []
        var places: [Key: Int] = [:]
        /// Indices of the causes that can explain other divergences.
        var explaining: [Int] = []
        for (divergence, session) in order.lazy.map({ all[$0] }) {
            let title = divergence.title
            let key = Key(
                code: divergence.code,
                divergenceClass: divergence.divergenceClass,
                title: title,
                places: divergence.differences.map(\.path)
            )
            if let place = places[key] {
                causes[place].add(divergence, in: session)
            } else if let place = explaining.first(where: { causes[$0].explains(divergence) }) {
                causes[place].follow(divergence)
            } else {
                places[key] = causes.count
                if divergence.subject?.lost.isEmpty == false { explaining.append(causes.count) }
                causes.append(DivergenceCause(divergence, in: session))
            }
        }
        return causes.filter { $0.isOf(failing) } + causes.filter { !$0.isOf(failing) }
    }

    private mutating func add(_ divergence: Divergence, in session: String) {
        count += 1
        followed += divergence.followed
        if sessions.last != session, !sessions.contains(session) { sessions.append(session) }
    }

    /// Adds a divergence that follows from this cause. Losses of the divergence can explain later ones.
    private mutating func follow(_ divergence: Divergence) {
        followed.append(divergence)
        followed += divergence.followed
        lost.formUnion(divergence.subject?.lost ?? [])
    }

    private func explains(_ divergence: Divergence) -> Bool {
        divergence.subject?.mentioned.contains(where: lost.contains) == true
    }
}

extension Divergence {
    /// The divergence as a human-readable clause.
    package var title: String {
        if let step = scriptStep { return "\(step.place): \(message)" }
        // A message of a whole session, a script or an undecided item says more than its stanzas.
        if subject == nil || code == .session || code == .undecided, !message.isEmpty { return message }
        return subject?.title ?? code.rawValue
    }

    /// The sort key among the divergences of all sessions: the recorded time of the request, or of the item if there is
    /// no request. The request counts because other sessions may show the consequences before the answer arrives.
    fileprivate var position: Int64 { asked ?? recorded?.at ?? after ?? .max }
}
