internal import TapRecord
import XMPPCore

/// Parsed stream features, with the positions of the parts that can be changed.
struct FeaturesReading: ~Copyable {
    /// The lists of names that can be changed.
    enum List {
        case mechanisms, sasl2, tokens, bindings

        /// The name of the list in a record.
        var label: String {
            switch self {
            case .mechanisms: "mechanisms"
            case .sasl2: "SASL2 mechanisms"
            case .tokens: "token mechanisms"
            case .bindings: "channel bindings"
            }
        }
    }

    private enum Place {
        case features, authentication, inline
        /// The element that contains a list, with the index of its container.
        case list(List, Int)
        case entry(List, Int)
        case other
    }

    private struct Frame {
        var place: Place
        var start: Int
        /// Whether the element is removed with all its contents.
        var isCut = false
    }

    private struct Container {
        let list: List
        /// The range of the start tag, which contains the local name.
        let tag: ByteRange
        let name: ByteRange
        var range: ByteRange
        var entries: [(name: String, range: ByteRange)] = []
    }

    private let takesOut: (@Sendable (FeaturesEdit.Feature) -> Bool)?
    private var reader = ItemReader()
    private var frames: [Frame] = []
    private var containers: [Container] = []
    /// The index of the last container of SASL2 mechanisms.
    private var authentication: Int?
    private var edit = ItemEdit()
    private var remarks: [String] = []
    private var text = WireText()
    /// The offset of the features' end tag.
    private var end = 0

    init(_ takesOut: (@Sendable (FeaturesEdit.Feature) -> Bool)?) { self.takesOut = takesOut }

    // MARK: Reading

    /// Reads the decoder's last item; returns false if it is not stream features.
    mutating func read(_ decoder: borrowing StreamDecoder) -> Bool {
        let item = decoder.bytes
        reader.begin(decoder)
        var isFirst = true
        while let token = reader.next(item) {
            switch token {
            case .start:
                if isFirst {
                    guard reader.namespace == .streams, item.slice(reader.name).equals("features") else { return false }
                    frames.append(Frame(place: .features, start: 0))
                } else {
                    enter(item)
                }
                isFirst = false
            case .text(let range): text.append(text: range, of: item)
            case .section(let range, let markup): text.append(section: range, markup: markup, of: item)
            case .end: leave()
            case .fault: return false
            }
        }
        return !isFirst && frames.isEmpty
    }

    private mutating func enter(_ item: Span<UInt8>) {
        text.removeAll()
        let start = Int(reader.tagRange.start)
        guard let parent = frames.last, !parent.isCut else {
            return frames.append(Frame(place: .other, start: start, isCut: true))
        }
        var frame = Frame(place: place(in: parent.place, item), start: start)
        if let feature = feature(in: parent.place, frame.place, item), takesOut?(feature) == true {
            frame.isCut = true
            remarks.append("\(feature.name) removed")
        } else if case .list(let list, _) = frame.place {
            frame.place = .list(list, containers.count)
            containers.append(Container(list: list, tag: reader.tagRange, name: reader.name, range: .empty))
        } else if case .entry(.bindings, let container) = frame.place {
            add(type(item), to: container)
        } else if case .authentication = frame.place {
            authentication = containers.count
            containers.append(Container(list: .sasl2, tag: reader.tagRange, name: reader.name, range: .empty))
        }
        frames.append(frame)
    }

    /// Returns the role of the current start tag within its parent.
    private func place(in parent: Place, _ item: Span<UInt8>) -> Place {
        let name = item.slice(reader.name)
        switch (parent, reader.namespace) {
        case (.features, .sasl) where name.equals("mechanisms"): return .list(.mechanisms, 0)
        case (.features, .sasl2) where name.equals("authentication"): return .authentication
        case (.features, .saslChannelBinding) where name.equals("sasl-channel-binding"): return .list(.bindings, 0)
        case (.authentication, .sasl2) where name.equals("inline"): return .inline
        case (.authentication, .sasl2) where name.equals("mechanism"):
            return authentication.map { .entry(.sasl2, $0) } ?? .other
        case (.inline, .fast) where name.equals("fast"): return .list(.tokens, 0)
        case (.list(.mechanisms, let index), .sasl) where name.equals("mechanism"): return .entry(.mechanisms, index)
        case (.list(.tokens, let index), .fast) where name.equals("mechanism"): return .entry(.tokens, index)
        case (.list(.bindings, let index), .saslChannelBinding) where name.equals("channel-binding"):
            return .entry(.bindings, index)
        default: return .other
        }
    }

    private func feature(in parent: Place, _ own: Place, _ item: Span<UInt8>) -> FeaturesEdit.Feature? {
        if case .entry = own { return nil }
        let place: FeaturesEdit.Feature.Place
        switch parent {
        case .features: place = .stream
        case .authentication: place = .authentication
        case .inline: place = .inline
        case .list, .entry, .other: return nil
        }
        return FeaturesEdit.Feature(name: item.slice(reader.name).string(), namespace: reader.namespace, place: place)
    }

    private func type(_ item: Span<UInt8>) -> String {
        for index in 0..<reader.attributeCount {
            let attribute = reader.attribute(index, item)
            guard attribute.namespace == .none, item.slice(attribute.name).equals("type") else { continue }
            var value: [UInt8] = []
            AttributeValue.decode(item.slice(attribute.value), into: &value)
            return value.span.string()
        }
        return ""
    }

    private mutating func add(_ name: String, to container: Int) {
        guard containers.indices.contains(container) else { return }
        containers[container].entries.append((name, .empty))
    }

    private mutating func leave() {
        guard let frame = frames.popLast() else { return }
        let range = ByteRange(frame.start, Int(reader.tagRange.end))
        let isOutermost = frames.last?.isCut != true
        switch frame.place {
        case .features: end = Int(reader.tagRange.start)
        case _ where frame.isCut: if isOutermost { edit.replace(range) }
        case .list(_, let index): if containers.indices.contains(index) { containers[index].range = range }
        case .authentication:
            if let authentication { containers[authentication].range = range }
        case .entry(let list, let index):
            if list != .bindings { add(text.bytes.span.string(), to: index) }
            if containers.indices.contains(index), let last = containers[index].entries.indices.last {
                containers[index].entries[last].range = range
            }
        case .inline, .other: break
        }
        text.removeAll()
    }

    // MARK: Changing

    /// Changes a list in all elements that contain it.
    mutating func change(_ list: List, by edit: FeaturesEdit.ListEdit, _ item: Span<UInt8>) {
        let own = containers.filter { $0.list == list }
        switch edit {
        case .keep: return
        case .only(let accepts):
            for container in own {
                let gone = container.entries.filter { !accepts($0.name) }
                guard !gone.isEmpty else { continue }
                remarks.append("\(list.label) \(gone.map(\.name).joined(separator: ", ")) removed")
                let ranges = gone.count == container.entries.count ? [container.range] : gone.map(\.range)
                for range in ranges { self.edit.replace(range) }
            }
        case .replace(let names):
            guard let first = own.first else { return add(list, names) }
            let before = own.flatMap { $0.entries.map(\.name) }
            guard before != names else { return }
            guard !names.isEmpty else {
                if !before.isEmpty { remarks.append("\(list.label) \(before.joined(separator: ", ")) removed") }
                for container in own { self.edit.replace(container.range) }
                return
            }
            remarks.append(
                "\(list.label) \(names.joined(separator: ", ")) instead of "
                    + (before.isEmpty ? "none" : before.joined(separator: ", "))
            )
            replace(first, names, item)
            for entry in own.dropFirst().flatMap(\.entries) { self.edit.replace(entry.range) }
        }
    }

    /// Inserts names at the position of the list's first name, and removes the old names.
    private mutating func replace(_ container: Container, _ names: [String], _ item: Span<UInt8>) {
        let prefix = item.slice(ByteRange(Int(container.tag.start) + 1, Int(container.name.start))).string()
        let bytes = Self.entries(container.list, names, prefix)
        let tagEnd = Int(container.tag.end)
        if let first = container.entries.first {
            edit.replace(first.range, with: bytes)
            for entry in container.entries.dropFirst() { edit.replace(entry.range) }
        } else if container.range == container.tag {
            let close = "</\(prefix)\(item.slice(container.name).string())>"
            edit.replace(ByteRange(tagEnd - 2, tagEnd), with: [0x3E] + bytes + Array(close.utf8))
        } else {
            edit.replace(ByteRange(tagEnd, tagEnd), with: bytes)
        }
    }

    /// Adds a list of channel bindings. Called if the server sends none; does nothing if it offers no authentication.
    private mutating func add(_ list: List, _ names: [String]) {
        guard list == .bindings, !names.isEmpty else { return }
        guard containers.contains(where: { $0.list == .mechanisms || $0.list == .sasl2 }) else { return }
        remarks.append("\(list.label) \(names.joined(separator: ", ")) added")
        let open = "<sasl-channel-binding xmlns='\(Namespace.saslChannelBinding.uri)'>"
        let bytes = Array(open.utf8) + Self.entries(list, names, "") + Array("</sasl-channel-binding>".utf8)
        edit.replace(ByteRange(end, end), with: bytes)
    }

    private static func entries(_ list: List, _ names: [String], _ prefix: String) -> [UInt8] {
        XMLWriter.bytes { xml in
            for name in names {
                if list == .bindings {
                    xml.element("\(prefix)channel-binding", ["type": name])
                } else {
                    xml.element("\(prefix)mechanism") { $0.text(name) }
                }
            }
        }
    }

    // MARK: The outcome

    func outcome(_ item: Span<UInt8>) -> EditedItem? {
        guard !edit.isEmpty else { return nil }
        return EditedItem(bytes: edit.applied(to: item), summary: remarks.joined(separator: "; "))
    }
}
