internal import TapRecord

extension DivergenceReport {
    /// Returns the report as one JSON object for a page: the causes with their first divergence, as people read them.
    ///
    /// - Parameter hasBoth: Whether the page has the records of both sides, and not only those of the recorded one.
    package func page(hasBoth: Bool) -> String {
        LineBuffer.object { json in
            json.field("command", command)
            json.field("recorded", recorded)
            json.field("live", live)
            json.field("failed", hasFailed)
            json.field("both", hasBoth)
            json.field("summary", summary)
            Self.write(errors, as: "errors", to: &json)
            Self.write(notes, as: "notes", to: &json)
            Self.write(latencyLines + timelineLines, as: "figures", to: &json)
            json.field("causes")
            json.openArray()
            for cause in causes {
                let divergence = cause.first
                json.openObject()
                json.field("title", cause.title)
                json.field("head", Self.head(cause))
                json.field("counts", cause.isOf(failingClasses))
                Self.write(divergence.differences, to: &json)
                if let item = divergence.recorded {
                    json.field("recorded")
                    Self.write(item, "expected", divergence.recordedMarks, to: &json)
                }
                if let item = divergence.live {
                    json.field("live")
                    Self.write(item, "received", divergence.liveMarks, to: &json)
                }
                Self.write(cause.followed.map(Self.line), as: "followed", to: &json)
                json.closeObject()
            }
            json.closeArray()
        }
    }

    /// Writes an item with its text in pieces, of which every second one differs.
    private static func write(
        _ item: Divergence.Item,
        _ word: String,
        _ marks: DifferenceMarks,
        to json: inout LineBuffer
    ) {
        var pieces: [String] = []
        func add(_ piece: String) -> String {
            pieces.append(piece)
            return ""
        }
        _ = marks.text(item.text, marked: add, plain: add)
        json.openObject()
        json.field("label", item.label(word))
        json.field("session", item.session)
        json.field("sequence", item.sequence)
        write(pieces, as: "pieces", to: &json)
        json.closeObject()
    }
}
