internal import Glibc
internal import ServiceLifecycle
internal import TapCapture

/// The inspector of a running proxy, as one of its services.
struct TerminalService: Service {
    /// The interval at which recording is extended.
    private static let pulse = Duration.seconds(5)

    private let inspector: TerminalInspector
    private let inspection: Inspection
    private let held: HeldStanzas

    init(_ inspection: Inspection, messages: TerminalMessages, held: HeldStanzas) {
        self.inspection = inspection
        self.held = held
        inspector = TerminalInspector(inspection, messages: messages, held: held)
    }

    /// Shows the inspector until graceful shutdown or cancellation. If the user quits it, the proxy is shut down.
    func run() async throws {
        await withTaskGroup { tasks in
            tasks.addTask { await show() }
            try? await gracefulShutdown()
            inspector.stop()
            tasks.cancelAll()
        }
    }

    private func show() async {
        inspection.touch()
        let ending = await withTaskGroup(of: TerminalLoop.Ending?.self) { tasks in
            tasks.addTask { [held] in
                await held.watch()
                return nil
            }
            tasks.addTask { [inspection] in
                while (try? await Task.sleep(for: Self.pulse)) != nil { inspection.touch() }
                return nil
            }
            tasks.addTask { [inspector] in await inspector.run(endsProgram: false) }
            while let ended = await tasks.next() {
                guard let ended else { continue }
                tasks.cancelAll()
                return ended
            }
            return .stopped
        }
        switch ending {
        case .quit: kill(getpid(), SIGTERM)
        // A closed terminal does not end the proxy.
        case .hangUp, .stopped: break
        case .failed(let reason):
            Console.printDiagnostic("--tui: \(reason)")
            kill(getpid(), SIGTERM)
        }
    }
}
