internal import ArgumentParser
internal import TapCapture
internal import TapRecord

struct SniffCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "sniff",
        abstract: "Show XMPP sessions from the packets of a network interface.",
        discussion: """
            Captures TCP packets with libpcap and shows the sessions in them as read shows those of a file of packets, \
            until Ctrl-C. Nothing is sent. Sessions are found on any port by their stream header. TLS without ALPN is \
            found only on the ports of XMPP and those of --port.

            TLS is decrypted with the secrets of --keylog. The file may grow while sniff runs: clients started with \
            SSLKEYLOGFILE and proxy --keylog add to it. Secrets may arrive after the packets: up to 64 KiB of each \
            connection wait for them.

            Needs the right to capture (CAP_NET_RAW); 'xmpptap doctor' shows whether you have it.

            Examples:

              xmpptap sniff -i eth0
              xmpptap sniff -i lo --port 5222 --keylog keys.txt --log verbose
              xmpptap sniff -i any --write night.pcapng --filter 'message'
              xmpptap sniff -i any --capture errors.xtap --capture-when 'level:error'
            """
    )

    @Option(
        name: [.short, .customLong("interface")],
        help: ArgumentHelp("Interface to capture from, such as eth0, lo, or any for all.", valueName: "name"),
        completion: .interfaces
    )
    var interface: String

    @Option(
        help: ArgumentHelp("Capture only this server port; repeatable (default: all).", valueName: "port"),
        transform: { try UInt16(Number.parse($0, in: 1...65535)) }
    )
    var port: [UInt16] = []

    @OptionGroup var shown: ShownLogOption
    @OptionGroup var filter: FilterOption
    @OptionGroup var form: FormOptions
    @OptionGroup var redaction: RedactionOptions

    @Flag(help: "Print JSON, one record per line.")
    var json = false

    @Option(
        help: ArgumentHelp("Write the captured packets to a file as well.", valueName: "file.pcapng"),
        completion: .file()
    )
    var write: String?

    @Option(
        file: "Record all sessions to this file, for read and explain.",
        discussion: "In a folder the file is xmpptap-TIME-NUMBER.xtap. A name that ends in .gz or .zst is compressed.",
        valueName: "path"
    )
    var capture: String?

    @OptionGroup var trigger: TriggerOptions
    @OptionGroup var store: StoreOption
    @OptionGroup var storeAccess: StoreAccessOptions
    @OptionGroup var storeSpool: SpoolOptions
    @OptionGroup var storeContent: StoredContentOptions

    @Flag(help: "Replace the file of --write if it exists.")
    var overwrite = false

    @Flag(help: "Add the secrets of --keylog to the file of --write.")
    var embedKeys = false

    @OptionGroup var keylog: KeyLogOption
    @OptionGroup var config: ConfigOption

    func run() throws {
        guard write != nil || !overwrite && !embedKeys else {
            throw Failure.usage("\(overwrite ? "--overwrite" : "--embed-keys") is used only with --write; add it")
        }
        guard keylog.keylog != nil || !embedKeys else {
            throw Failure.usage("--embed-keys is used only with --keylog; add it")
        }
        let policy = try redaction.policy(showsBodies: form.bodies == true)
        let trigger = try trigger.trigger(of: self.capture)
        let store = try store.request(storeAccess, storeSpool, storeContent)
        let keys = try keylog.followed()
        let capture = try openCapture(keys)
        // From now on, Ctrl-C ends the capture in an orderly way.
        Interruption.installHandlers()
        let reader: RecordReader
        do {
            reader = try RecordReader(capture, advice: AdviceTable.advice(for:), redaction: policy)
        } catch {
            throw Failure(error)
        }
        let recording = try self.capture.map { path throws(Failure) in
            try SniffedCapture(path, trigger, of: reader.firstHeader)
        }
        Console.printStandardError("capturing on \(interface); Ctrl-C ends it")
        let plan = ReadPlan(
            files: [interface],
            log: shown.log,
            filter: filter.filter,
            form: json ? .json : form.format,
            colour: form.color,
            showsBodies: form.bodies,
            sessions: [],
            header: reader.firstHeader,
            isLive: true,
            in: .current
        )
        if let note = plan.note { Console.printDiagnostic(note) }
        try ReadRun(plan, capture: recording, store: store).run(reader)
        if let keys { keylog.reportDamage(of: keys.log) }
        if let fault = capture.recordingFault { throw Failure.file("--write: \(fault); the packets before are in it") }
    }

    private func openCapture(_ keys: FollowedKeyLog?) throws(Failure) -> LiveCapture {
        let capture: LiveCapture
        do throws(LiveCapture.Fault) {
            capture = try LiveCapture(interface, ports: port, keys: keys)
        } catch {
            throw .network("cannot capture on \(interface): \(CaptureRight.explanation(error))")
        }
        guard let write else { return capture }
        do throws(WriterFault) {
            let tool = "xmpptap \(Version.text)"
            try capture.record(to: write, replaces: overwrite, tool: tool, hasSecrets: embedKeys)
        } catch {
            guard error.code == .exists else { throw .file("--write: \(error)") }
            throw .usage("\(write) exists already; choose another name or add --overwrite")
        }
        return capture
    }
}
