internal import Glibc
internal import Synchronization

/// The functions of libzstd, which is loaded at run time if it is installed; the program is not linked with it.
///
/// `@unchecked Sendable` because it holds only addresses of functions, and the library is never unloaded.
struct Zstandard: @unchecked Sendable {
    /// `ZSTD_inBuffer` and `ZSTD_outBuffer`, which differ only in the constness of the pointer.
    struct Buffer {
        var bytes: UnsafeMutableRawPointer?
        var size: Int
        var position = 0
    }

    typealias Create = @convention(c) () -> OpaquePointer?
    typealias Free = @convention(c) (OpaquePointer?) -> Int
    typealias Compress =
        @convention(c) (
            OpaquePointer?, UnsafeMutableRawPointer, UnsafeMutableRawPointer, Int32
        ) -> Int
    typealias Decompress = @convention(c) (OpaquePointer?, UnsafeMutableRawPointer, UnsafeMutableRawPointer) -> Int
    typealias SetParameter = @convention(c) (OpaquePointer?, Int32, Int32) -> Int
    typealias Reset = @convention(c) (OpaquePointer?, Int32) -> Int
    typealias IsError = @convention(c) (Int) -> UInt32
    typealias ErrorName = @convention(c) (Int) -> UnsafePointer<CChar>?

    /// The values of `ZSTD_c_compressionLevel`, `ZSTD_e_flush`, `ZSTD_e_end` and `ZSTD_reset_session_only`.
    static let level: Int32 = 100
    static let flush: Int32 = 1
    static let end: Int32 = 2
    static let session: Int32 = 1

    let createCompressor: Create
    let freeCompressor: Free
    let setParameter: SetParameter
    let compress: Compress
    let createDecompressor: Create
    let freeDecompressor: Free
    let decompress: Decompress
    let resetDecompressor: Reset
    let isError: IsError
    let errorName: ErrorName

    /// The name of the library's file. Tests change it to simulate a system without the library.
    @TaskLocal static var file = "libzstd.so.1"

    private static let libraries = Mutex<[String: Zstandard?]>([:])

    /// The library; nil if it is not installed.
    static var library: Zstandard? {
        libraries.withLock { libraries in
            if let known = libraries[file] { return known }
            let library = load(file)
            libraries[file] = .some(library)
            return library
        }
    }

    private static func load(_ file: String) -> Zstandard? {
        guard let handle = dlopen(file, RTLD_NOW | RTLD_LOCAL) else { return nil }
        func function<Function>(_ name: String, as type: Function.Type) -> Function? {
            dlsym(handle, name).map { unsafeBitCast($0, to: type) }
        }
        guard let createCompressor = function("ZSTD_createCCtx", as: Create.self),
            let freeCompressor = function("ZSTD_freeCCtx", as: Free.self),
            let setParameter = function("ZSTD_CCtx_setParameter", as: SetParameter.self),
            let compress = function("ZSTD_compressStream2", as: Compress.self),
            let createDecompressor = function("ZSTD_createDCtx", as: Create.self),
            let freeDecompressor = function("ZSTD_freeDCtx", as: Free.self),
            let decompress = function("ZSTD_decompressStream", as: Decompress.self),
            let resetDecompressor = function("ZSTD_DCtx_reset", as: Reset.self),
            let isError = function("ZSTD_isError", as: IsError.self),
            let errorName = function("ZSTD_getErrorName", as: ErrorName.self)
        else { return nil }
        return Zstandard(
            createCompressor: createCompressor,
            freeCompressor: freeCompressor,
            setParameter: setParameter,
            compress: compress,
            createDecompressor: createDecompressor,
            freeDecompressor: freeDecompressor,
            decompress: decompress,
            resetDecompressor: resetDecompressor,
            isError: isError,
            errorName: errorName
        )
    }
}
