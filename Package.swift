// swift-tools-version:6.3
import PackageDescription

// A warning fails CI's build and nobody else's: the next compiler will have new ones.
let warnings: [SwiftSetting] =
    Context.environment["XMPPTAP_WARNINGS_AS_ERRORS"] == "1" ? [.treatAllWarnings(as: .error)] : []

let settings: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        // Spans handed out by a decoder name what they borrow from; swift-nio depends on the same feature.
        .enableExperimentalFeature("Lifetimes"),
    ] + warnings

// The command line parses options and formats reports, the manual is shown, and the control interface answers requests.
// Optimisation costs 50 s of a clean build's CPU time, and saves less than 1 % of the instructions of `read`: the loops over
// records are in other targets.
// A program to be installed is built once for all of its users, with optimisation.
let unoptimised: [SwiftSetting] =
    Context.environment["XMPPTAP_OPTIMISE_ALL"] == "1"
    ? [] : [.unsafeFlags(["-Onone", "-assert-config", "Release"], .when(configuration: .release))]

/// CI builds some tests in release, for the speed of the code under test. Without optimisation of the tests themselves, the build
/// takes 290 s less of CPU time.
let testSettings = settings + unoptimised

let nioCore = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let nioHTTP = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")

let package = Package(
    name: "xmpptap",
    products: [
        .executable(name: "xmpptap", targets: ["xmpptap"]),
        .library(name: "XMPPCore", targets: ["XMPPCore"]),
        .library(
            name: "TapCore",
            targets: ["TapCore", "TapDiagnosis", "TapRecord", "TapRules", "TapStreamManagement"]
        ),
        .library(name: "TapCapture", targets: ["TapCapture", "TapSecurity"]),
        .library(name: "TapStore", targets: ["TapStore"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0", traits: []),
        // Its server only. The router depends on metrics, tracing and a file system: a tenth of a clean build.
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
    ],
    targets: [
        // System libraries: a module map and inline wrappers for macros, nothing else.
        .systemLibrary(name: "CLibXML2", pkgConfig: "libxml-2.0", providers: [.apt(["libxml2-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CPcap", pkgConfig: "libpcap", providers: [.apt(["libpcap-dev"])]),
        .systemLibrary(name: "CResolv"),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),

        // The manual and the description of the HTTP interface.
        .target(name: "CAssets"),

        // The core: no socket, no clock, no file, no thread, no Foundation.
        .target(
            name: "XMPPCore",
            dependencies: ["CLibXML2"],
            swiftSettings: settings
        ),
        .target(name: "TapRecord", dependencies: ["XMPPCore"], swiftSettings: settings),
        .target(name: "TapDiagnosis", dependencies: ["TapRecord", "XMPPCore"], swiftSettings: settings),
        .target(name: "TapRules", dependencies: ["TapDiagnosis", "TapRecord", "XMPPCore"], swiftSettings: settings),
        .target(name: "TapStreamManagement", dependencies: ["TapRecord", "XMPPCore"], swiftSettings: settings),
        .target(
            name: "TapCore",
            dependencies: ["TapDiagnosis", "TapRecord", "TapRules", "TapStreamManagement", "XMPPCore"],
            swiftSettings: settings
        ),

        .target(name: "TapReplay", dependencies: ["TapRecord", "TapRules", "XMPPCore"], swiftSettings: settings),

        // One target per foreign library.
        .target(
            name: "TapSecurity",
            dependencies: ["COpenSSL", "TapCore", "TapDiagnosis", "TapRecord", "XMPPCore", nioCore],
            swiftSettings: settings
        ),
        .target(
            name: "TapCapture",
            dependencies: [
                "CPcap", "CZlib", "TapCore", "TapDiagnosis", "TapRecord", "TapRules", "TapSecurity", "XMPPCore",
            ],
            swiftSettings: settings
        ),
        .target(
            name: "TapStore",
            dependencies: [
                "CSQLite", "TapCapture", "TapCore", "TapDiagnosis", "TapRecord", "TapRules", "TapSecurity", "XMPPCore",
            ],
            swiftSettings: settings
        ),
        .target(
            name: "TapNetwork",
            dependencies: [
                "CResolv", "TapCore", "TapDiagnosis", "TapRecord", "TapReplay", "TapRules", "TapSecurity", "XMPPCore",
                nioCore, nioPosix, nioHTTP, logging, lifecycle,
            ],
            swiftSettings: settings
        ),
        .target(
            name: "TapControl",
            dependencies: [
                "CAssets", "TapCapture", "TapCore", "TapDiagnosis", "TapNetwork", "TapRecord", "TapRules", "XMPPCore",
                nioCore, nioPosix, nioHTTP,
                logging, lifecycle,
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
            ],
            exclude: ["openapi.json", "Web"],
            swiftSettings: settings + unoptimised
        ),

        .target(
            name: "TapManual",
            dependencies: ["CAssets", "TapRecord"],
            swiftSettings: settings + unoptimised
        ),

        // Wiring only.
        .executableTarget(
            name: "xmpptap",
            dependencies: [
                "TapCapture", "TapControl", "TapCore", "TapDiagnosis", "TapManual", "TapNetwork", "TapRecord",
                "TapReplay", "TapRules", "TapSecurity", "TapStore", "XMPPCore",
                "CLibXML2",
                nioCore, nioPosix, logging, lifecycle,
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            exclude: ["Manual"],
            swiftSettings: settings + unoptimised
        ),

        // Tests.
        .target(
            name: "TapTestKit",
            dependencies: ["TapCore", "TapDiagnosis", "TapRecord", "TapRules", "TapStore", "XMPPCore"],
            path: "Tests/TapTestKit",
            exclude: ["Clients"],
            swiftSettings: settings
        ),
        .testTarget(name: "XMPPCoreTests", dependencies: ["XMPPCore", "TapTestKit"], swiftSettings: testSettings),
        .testTarget(
            name: "TapRecordTests",
            dependencies: ["TapRecord", "TapCore", "XMPPCore", "TapTestKit"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "TapDiagnosisTests",
            dependencies: ["TapDiagnosis", "TapCore", "TapRecord", "XMPPCore", "TapTestKit"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "TapRulesTests",
            dependencies: ["TapRules", "TapCore", "TapRecord", "XMPPCore", "TapTestKit"],
            exclude: ["firewall.lua"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "TapStreamManagementTests",
            dependencies: ["TapStreamManagement", "TapRecord", "XMPPCore", "TapTestKit"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "TapCoreTests",
            dependencies: [
                "TapCore", "TapDiagnosis", "TapRecord", "TapRules", "TapStreamManagement", "XMPPCore", "TapTestKit",
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "TapReplayTests",
            dependencies: ["TapReplay", "TapRecord", "XMPPCore", "TapTestKit"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "TapSecurityTests",
            dependencies: [
                "TapSecurity", "TapCore", "TapDiagnosis", "TapRecord", "XMPPCore", "TapTestKit", "COpenSSL", nioCore,
                nioPosix,
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "TapCaptureTests",
            dependencies: [
                "CPcap", "CZlib", "TapCapture", "TapCore", "TapDiagnosis", "TapRecord", "TapRules", "TapSecurity",
                "XMPPCore", "TapTestKit",
            ],
            exclude: ["ClientLog/Samples"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "TapStoreTests",
            dependencies: ["TapStore", "TapCapture", "TapCore", "TapRecord", "TapSecurity", "TapTestKit", "XMPPCore"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "TapNetworkTests",
            dependencies: [
                "TapNetwork", "TapCore", "TapDiagnosis", "TapRecord", "TapReplay", "TapRules", "TapSecurity",
                "XMPPCore",
                "TapTestKit", nioCore, nioPosix, nioHTTP, logging, lifecycle,
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "TapControlTests",
            dependencies: [
                "CAssets", "TapCapture", "TapControl", "TapCore", "TapNetwork", "TapRecord", "TapTestKit", nioCore,
                nioPosix, logging,
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "xmpptapTests",
            dependencies: [
                "xmpptap", "TapCapture", "TapCore", "TapDiagnosis", "TapManual", "TapNetwork", "TapRecord", "TapReplay",
                "TapRules", "TapSecurity", "TapStore", "XMPPCore", "TapTestKit",
                logging,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            exclude: ["Help"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "EndToEndTests",
            dependencies: ["TapTestKit", "TapRecord", "TapStore"],
            exclude: ["Page"],
            swiftSettings: testSettings
        ),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .c2x
)

// Without it there are all: CI builds in release only those with tests that are too slow in debug.
if let wanted = Context.environment["XMPPTAP_TEST_TARGETS"]?.split(separator: ",") {
    package.targets.removeAll { target in target.type == .test && !wanted.contains { $0 == target.name } }
}
