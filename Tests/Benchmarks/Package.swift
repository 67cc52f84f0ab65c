// swift-tools-version:6.3
import PackageDescription

// The settings of the package in the repository's root.
let warnings: [SwiftSetting] =
    Context.environment["XMPPTAP_WARNINGS_AS_ERRORS"] == "1" ? [.treatAllWarnings(as: .error)] : []

let settings: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableExperimentalFeature("Lifetimes"),
        // Makes `package` declarations visible: -package-name has no effect, since SwiftPM passes its own last.
        .unsafeFlags(["-Xfrontend", "-disable-access-control"]),
    ] + warnings

let package = Package(
    name: "Benchmarks",
    dependencies: [.package(name: "xmpptap", path: "../..")],
    targets: [
        .systemLibrary(name: "CLibXML2ForBenchmarks", path: "Sources/CLibXML2", pkgConfig: "libxml-2.0"),
        // The reference: libxml2 from C with callbacks that do nothing.
        .target(name: "PlainXML", dependencies: ["CLibXML2ForBenchmarks"]),
        .executableTarget(
            name: "CoreBenchmark",
            dependencies: [
                .product(name: "XMPPCore", package: "xmpptap"), .product(name: "TapCore", package: "xmpptap"),
                "PlainXML", "StanzaMix",
            ],
            swiftSettings: settings
        ),
        // The stanzas of both benchmarks.
        .target(name: "StanzaMix", swiftSettings: settings),
        // The reference: a loop with prepared statements.
        .target(name: "PlainSQLite", linkerSettings: [.linkedLibrary("sqlite3")]),
        .executableTarget(
            name: "StoreBenchmark",
            dependencies: [.product(name: "TapStore", package: "xmpptap"), "PlainSQLite"],
            swiftSettings: settings
        ),
        .executableTarget(name: "RelayComparison", dependencies: ["StanzaMix"], swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
