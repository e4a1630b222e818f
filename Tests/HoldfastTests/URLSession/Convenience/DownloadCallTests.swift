// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastSemantics
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("URLSession API: Pipeline.download(for:)", .timeLimit(.minutes(20)))
struct DownloadCallTests {
    @Test("The caller owns the file: in the temporary directory, for this user only, with the body")
    func file() async throws {
        let transport = ScriptedTransport([.stream(404, chunks: ["he", "llo"])])
        let (file, response) = try await Pipeline(transport: transport).download(for: .get())
        defer { try? FileManager.default.removeItem(at: file) }
        let folder = FileManager.default.temporaryDirectory.standardizedFileURL.path
        #expect(file.deletingLastPathComponent().standardizedFileURL.path == folder)
        #expect(try Data(contentsOf: file) == Data("hello".utf8))
        let attributes = try POSIXFileSystem().attributes(of: file.path)
        #expect(attributes.permissions == 0o600)
        #expect((response as? HTTPURLResponse)?.statusCode == 404)
    }

    @Test("A 204 has no content, whatever its Content-Length says (RFC 9112 §6.3)")
    func noContent() async throws {
        let server = try LoopbackServer.start { _ in LoopbackReply(204, fields: [("Content-Length", "5")]) }
        let (file, _) = try await Pipeline(transport: URLSessionTransport()).download(from: server.url())
        defer { try? FileManager.default.removeItem(at: file) }
        #expect(try Data(contentsOf: file).isEmpty)
    }

    @Test("8 MiB are written chunk by chunk: each is in the file before the next one is requested")
    func constantMemory() async throws {
        let folder = try Folder()
        let source = MeasuredBytes(count: 128, folder: folder)
        let pipeline = Pipeline(transport: BodyTransport(body: ResponseBody(source)))
        let (file, _) = try await pipeline.download(for: .get(), into: folder.url)
        #expect(try POSIXFileSystem().attributes(of: file.path).size == 128 << 16)
        #expect(source.sizes == (0...128).map { $0 << 16 })
    }

    @Test(
        "Content that ends before its Content-Length fails the download, whatever the transport says",
        arguments: [0, 3]
    )
    func endsEarly(_ count: Int) async throws {
        let folder = try Folder()
        let fields: HeaderFields = ["Content-Length": "9"]
        let chunks = count > 0 ? [String(repeating: "x", count: count)] : []
        let pipeline = Pipeline(
            transport: ScriptedTransport([.stream(200, fields, chunks: chunks)], repeatsLastStep: true)
        )
        let error = try await #require(throws: ServiceError.self) {
            try await pipeline.download(for: .get(), into: folder.url)
        }
        #expect(error.code == .connectionLost)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).isEmpty)
        var head = URLRequest.get()
        head.httpMethod = "HEAD"
        _ = try await pipeline.download(for: head, into: folder.url)
    }

    @Test("Two concurrent downloads have two files")
    func twoFiles() async throws {
        let transport = ScriptedTransport { request in .stream(chunks: [request.url?.path ?? "", "!"]) }
        let pipeline = Pipeline(transport: transport)
        let folder = try Folder()
        async let first = pipeline.download(for: .get("http://origin.example/a"), into: folder.url)
        async let second = pipeline.download(for: .get("http://origin.example/b"), into: folder.url)
        let files = try await [first.0, second.0]
        #expect(try files.map { try String(contentsOf: $0, encoding: .utf8) } == ["/a!", "/b!"])
        #expect(try folder.downloads.count == 2)
    }

    @Test(
        "A missing or invalid directory gives a clear error, and the transfer ends",
        arguments: ["no", "content"]
    )
    func unwritable(_ name: String) async throws {
        let folder = try Folder()
        _ = try folder.file(Data())
        let source = ChunkSource([ByteChunk([1])])
        let pipeline = Pipeline(transport: BodyTransport(body: ResponseBody(source)))
        let error = await #expect(throws: ServiceError.self) {
            try await pipeline.download(for: .get(), into: folder.url.appendingPathComponent(name))
        }
        #expect(error?.code == .other)
        #expect(error?.message.contains("free space and permissions") == true)
        #expect(error?.cause is FileSystemError)
        #expect(source.isCancelled)
    }

    @Test("A disk that fills up gives a clear error, the file is removed, and the transfer ends")
    func diskFull() async throws {
        let files = SimulatedFileSystem(capacity: 64 << 10)
        try files.createDirectory("/downloads")
        let source = ChunkSource((0..<8).map { _ in ByteChunk([UInt8](repeating: 1, count: 20_000)) })
        let pipeline = Pipeline(transport: BodyTransport(body: ResponseBody(source)))
        let error = await #expect(throws: ServiceError.self) {
            try await pipeline.download(for: .get(), into: URL(fileURLWithPath: "/downloads"), on: files)
        }
        #expect(error?.message.contains("free space and permissions") == true)
        #expect((error?.cause as? FileSystemError)?.errno == ENOSPC)
        #expect(error?.progress == .bytesReceived)
        #expect(error?.urlError.code == .unknown)
        #expect(try files.list("/downloads").isEmpty)
        #expect(source.isCancelled)
    }

    @Test("If cancelled while a body in memory is written, the file is removed")
    func cancelledInMemory() async throws {
        let folder = try Folder()
        let body = ResponseBody(ByteChunk(copying: "in memory".utf8))
        let pipeline = Pipeline(transport: BodyTransport(body: body), hooks: [CancellingHook()])
        let task = Task { try await pipeline.download(for: .get(), into: folder.url).0 }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try folder.downloads.isEmpty)
    }

    @Test("A stored response can be downloaded repeatedly, each time to a new file")
    func fromCache() async throws {
        let step = ScriptedTransport.Step.stream(200, ["Cache-Control": "max-age=60"], chunks: ["st", "ored"])
        let pipeline = Pipeline(transport: ScriptedTransport([step]), cache: .inMemory())
        let folder = try Folder()
        var files: Set<URL> = []
        for _ in 0..<3 {
            let (file, _) = try await pipeline.download(for: .get(), into: folder.url)
            #expect(try Data(contentsOf: file) == Data("stored".utf8))
            files.insert(file)
            await pipeline.drain()
        }
        #expect(files.count == 3)
    }
}

/// Answers with a body.
private struct BodyTransport: Transport {
    let body: ResponseBody

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        Response(status: 200, body: self.body, url: request.url)
    }
}

/// Cancels the calling task at the head.
private struct CancellingHook: ServiceHook {
    func onSuccess(_ response: inout Response, _ request: URLRequest, _ context: inout CallContext) async throws {
        withUnsafeCurrentTask { $0?.cancel() }
    }
}

/// Chunks of 64 KiB that note how large the only file in a folder is when they are asked for.
private final class MeasuredBytes: ByteSource {
    private let left: Mutex<Int>
    private let measured = Mutex<[Int]>([])
    private let folder: Folder

    init(count: Int, folder: Folder) {
        left = Mutex(count)
        self.folder = folder
    }

    var sizes: [Int] { measured.withLock { $0 } }

    func next() async throws -> ByteChunk? {
        let names = try folder.downloads
        let name = try #require(names.first)
        let size = try POSIXFileSystem().attributes(of: folder.url.appendingPathComponent(name).path).size
        measured.withLock { $0.append(size) }
        let isOver = left.withLock { left in
            left -= 1
            return left < 0
        }
        return isOver ? nil : ByteChunk([UInt8](repeating: 7, count: 1 << 16))
    }

    func cancel() {}
}
