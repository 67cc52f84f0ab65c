/// Tags: finding their end, opening and closing elements, and what a head says of them.
extension StanzaScanner {
    /// Looks for the `>` of an incomplete tag without taking it apart again at each new byte. Stops early at what no
    /// tag can hold, so that a fault is told when it is seen.
    mutating func findTagEnd(_ window: Span<UInt8>, from: Int, quote: UInt8, last: UInt8) -> Bool {
        var (index, quote, last) = (from, quote, last)
        let limit = cursor &+ limits.tagBytes
        let end = min(window.count, limit)
        while index < end {
            let byte = window[index]
            if quote != 0 {
                if byte == quote { quote = 0 }
                if byte == 0x3C { return true }
            } else {
                switch byte {
                case 0x3E, 0x3C: return true
                case 0x22, 0x27:
                    guard last == 0x3D else { return true }
                    quote = byte
                default: break
                }
            }
            if !XMLCharacters.isWhitespace(byte) { last = byte }
            index &+= 1
        }
        if index >= limit { return true }
        state = .tag(searched: index, quote: quote, last: last)
        return false
    }

    mutating func readTag(_ window: Span<UInt8>, at start: Int) -> Signal {
        let end = min(window.count, start &+ limits.tagBytes)
        switch tag.read(window.extracting(0..<end), at: start, limits: limits) {
        case .fault(let code, let at, let limit): return .fault(code, at: at, limit: limit)
        case .incomplete:
            guard window.count &- start < limits.tagBytes else {
                return .fault(.tagTooLong, at: start, limit: limits.tagBytes)
            }
            if case .tag = state {
                // The search stopped at something, and the reader still waits for more: take its word.
                state = .tag(searched: window.count, quote: 0, last: 0)
                return .incomplete
            }
            cursor = start
            state = .tag(searched: start &+ 1, quote: 0, last: 0)
            return .more
        case .complete: return tag.kind == .end ? closeElement(window, at: start) : openElement(window, at: start)
        }
    }

    /// The end tag at the cursor. Nearly every one is just the open element's name between `</` and `>`.
    @inline(__always)
    mutating func readEndTag(_ window: Span<UInt8>) -> Signal {
        let top = open[open.count &- 1]
        let nameStart = cursor &+ 2
        let nameEnd = nameStart &+ Int(top.nameCount)
        guard !top.isNameStored, nameEnd < window.count, window[nameEnd] == 0x3E, nameEnd &- cursor < limits.tagBytes,
            window.extracting(nameStart..<nameEnd).equals(window.extracting(nameRange(top)))
        else { return readTag(window, at: cursor) }
        return close(top, at: cursor, end: nameEnd &+ 1)
    }

    @inline(__always)
    private func nameRange(_ element: Open) -> Range<Int> {
        Int(element.nameStart)..<(Int(element.nameStart) &+ Int(element.nameCount))
    }

    private mutating func closeElement(_ window: Span<UInt8>, at start: Int) -> Signal {
        guard open.count > 0 else { return .fault(.notAStream, at: start, limit: 0) }
        let top = open[open.count &- 1]
        let name = window.extracting(tag.name.range)
        let isSame =
            top.isNameStored
            ? names.span.extracting(nameRange(top)).equals(name) : window.extracting(nameRange(top)).equals(name)
        guard isSame else { return .fault(.mismatchedTag, at: start, limit: 0) }
        return close(top, at: start, end: tag.end)
    }

    @inline(__always)
    private mutating func close(_ top: Open, at start: Int, end: Int) -> Signal {
        if let outlineState, outlineState.pointee.item == outlinedItem {
            outlineState.pointee.close(at: start, end: end)
        }
        if top.isNameStored { names.removeLast(names.count &- Int(top.nameStart)) }
        open.truncate(to: open.count &- 1)
        guard open.count > 0 else {
            head = StanzaHead()
            return .item(.end, length: end, beginsEpoch: false)
        }
        scope.leave(to: Int(top.bindings))
        guard open.count > 1 else { return .item(.element, length: end, beginsEpoch: false) }
        cursor = end
        state = .content
        return .more
    }

    private mutating func openElement(_ window: Span<UInt8>, at start: Int) -> Signal {
        let depth = open.count
        guard depth < limits.depth else { return .fault(.tooDeep, at: start, limit: limits.depth) }
        if depth <= 1, isStreamHeader(window) { return openStream(window) }
        guard depth > 0 else { return .fault(.notAStream, at: start, limit: 0) }

        let bindings = scope.count
        var element = Open()
        element.bindings = Int32(truncatingIfNeeded: bindings)
        element.defaultBinding = open[depth &- 1].defaultBinding
        if tag.hasDeclarations {
            if let code = scope.enter(tag, in: window, isHeader: false, limit: limits.namespaces) {
                return .fault(code, at: start, limit: code == .tooManyNamespaces ? limits.namespaces : 0)
            }
            element.defaultBinding = scope.defaultBinding
            if scope.hasDoubtfulURI { noteDifference() }
        }
        let binding: Int32
        switch tag.resolve(window, in: scope, defaultBinding: element.defaultBinding) {
        case .binding(let found): binding = found
        case .fault(let code, let at): return .fault(code, at: at, limit: 0)
        }
        if tag.hasNumericReference { head.isUnusual = true }
        if depth == 1 {
            noteStanza(window, binding: binding)
        } else {
            if !head.mayHoldSecret, tag.mayHoldSecret(window, scope.namespace(binding), secrets) {
                head.mayHoldSecret = true
            }
            // What lies beyond the item limit is not part of a head: it may have come when the beginning had gone.
            if depth == 2, head.payloadName == nil, !hasDiscarded, tag.end <= limits.itemBytes {
                head.payloadName = tag.localName
                head.payloadNamespace = scope.name(binding)
            }
        }
        if let outlineState { note(binding, at: start, of: window, isItem: depth == 1, in: outlineState) }
        cursor = tag.end
        if tag.kind == .empty {
            scope.leave(to: bindings)
            guard depth > 1 else {
                head.isEmptyElement = true
                return .item(.element, length: tag.end, beginsEpoch: false)
            }
        } else {
            element.nameStart = tag.name.start
            element.nameCount = Int32(truncatingIfNeeded: tag.name.count)
            open.append(element)
        }
        state = .content
        return .more
    }

    @inline(__always)
    private mutating func note(
        _ binding: Int32,
        at start: Int,
        of window: Span<UInt8>,
        isItem: Bool,
        in outline: UnsafeMutablePointer<ItemOutline.State>
    ) {
        if isItem { outlinedItem = outline.pointee.beginItem() }
        guard outline.pointee.item == outlinedItem else { return }
        outline.pointee.open(tag, at: start, of: window, scope.name(binding))
    }

    private mutating func noteDifference() {
        head.isUnusual = true
        head.hasDoubtfulNamespace = true
        scope.hasDoubtfulURI = false
    }

    // MARK: Stream header

    /// Whether the tag opens a stream, by its own declarations or those in force.
    @inline(__always)
    private mutating func isStreamHeader(_ window: Span<UInt8>) -> Bool {
        let name = tag.localName
        guard name.count == 6, window.extracting(name.range).equals("stream") else { return false }
        return isOfStreams(window)
    }

    private mutating func isOfStreams(_ window: Span<UInt8>) -> Bool {
        let prefix = tag.prefix(in: window)
        for index in 0..<tag.attributes.count {
            let attribute = tag.attributes[index]
            guard attribute.isDeclaration, window.extracting(attribute.declaredPrefix).equals(prefix) else { continue }
            guard attribute.needsDecoding else {
                return Namespace(uri: window.extracting(attribute.value.range)) == .streams
            }
            var uri: [UInt8] = []
            AttributeValue.decode(window.extracting(attribute.value.range), into: &uri)
            return Namespace(uri: uri.span) == .streams
        }
        guard let binding = prefix.isEmpty ? scope.defaultBinding : scope.find(prefix) else { return false }
        return scope.namespace(binding) == .streams
    }

    private mutating func openStream(_ window: Span<UInt8>) -> Signal {
        let beginsEpoch = !seenDeclaration || open.count > 0
        resetEpoch()
        if let code = scope.enter(tag, in: window, isHeader: true, limit: limits.namespaces) {
            return .fault(code, at: 0, limit: code == .tooManyNamespaces ? limits.namespaces : 0)
        }
        var root = Open()
        root.defaultBinding = scope.defaultBinding
        switch tag.resolve(window, in: scope, defaultBinding: root.defaultBinding) {
        case .binding(let binding):
            head.name = tag.localName
            head.namespace = scope.name(binding)
            noteAttributes(window)
        case .fault(let code, let at): return .fault(code, at: at, limit: 0)
        }
        if tag.hasReference { head.mayHoldSecret = true }
        if scope.hasDoubtfulURI { noteDifference() }
        declarations = scope.declarations
        if tag.kind == .empty {
            head.isEmptyElement = true
        } else {
            // The header goes before its end comes.
            names.append(window.extracting(tag.name.range))
            root.nameCount = Int32(truncatingIfNeeded: tag.name.count)
            root.isNameStored = true
            open.append(root)
        }
        return .item(.header, length: tag.end, beginsEpoch: beginsEpoch)
    }

    /// The namespace of the stream's content: the header's default namespace.
    public var contentNamespace: Namespace {
        open.count > 0 ? scope.namespace(open[0].defaultBinding) : .none
    }

    /// Calls `body` with each prefix (empty for the default) and URI the stream header declared.
    ///
    /// For a parser that gets single items. Only between items; within one its own declarations come too.
    public func forEachDeclaration(_ body: (_ prefix: Span<UInt8>, _ uri: Span<UInt8>) -> Void) {
        scope.forEach(body)
    }

    /// Copies the declarations in force: between items those of the stream header.
    func copyScope(to scope: inout NamespaceScope) { scope.assign(self.scope) }

    /// The URI of `name`, which belongs to a head of this scanner's current epoch, appended to `output`.
    /// `item` holds the item of that head.
    public func appendURI(of name: NamespaceName, item: Span<UInt8>, to output: inout [UInt8]) {
        switch name.source {
        case .known:
            let uri = name.namespace.uri
            output.append(contentsOf: UnsafeBufferPointer(start: uri.utf8Start, count: uri.utf8CodeUnitCount))
        case .item(let range): AttributeValue.decode(item.slice(range), into: &output)
        case .inherited(let range): scope.appendInherited(range, to: &output)
        }
    }

    // MARK: Heads

    private mutating func noteStanza(_ window: Span<UInt8>, binding: Int32) {
        head.name = tag.localName
        head.namespace = scope.name(binding)
        let name = window.extracting(tag.localName.range)
        if head.namespace.namespace.isContent {
            switch name.count {
            case 2 where name.equals("iq"): head.kind = .iq
            case 7 where name.equals("message"): head.kind = .message
            case 8 where name.equals("presence"): head.kind = .presence
            default: break
            }
        }
        if tag.hasReference || secrets.contains(element: name, head.namespace.namespace) { head.mayHoldSecret = true }
        noteAttributes(window)
    }

    private mutating func noteAttributes(_ window: Span<UInt8>) {
        for index in 0..<tag.attributes.count {
            let attribute = tag.attributes[index]
            let name = window.extracting(attribute.name.range)
            let value = StanzaHead.Attribute(range: attribute.value, needsDecoding: attribute.needsDecoding)
            switch name.count {
            case 2 where name.equals("id"): head.id = value
            case 2 where name.equals("to"): head.to = value
            case 4 where name.equals("type"): head.type = value
            case 4 where name.equals("from"): head.from = value
            case 7 where name.equals("version"): head.version = value
            default:
                if !head.mayHoldSecret, attribute.mayBeSecret(window, secrets) { head.mayHoldSecret = true }
            }
        }
    }
}
