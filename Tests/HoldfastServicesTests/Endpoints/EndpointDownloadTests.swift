// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An API with both stages that a download treats in its own way.
private struct Files: WebService {
    struct BasicResponse: Decodable { let success: Bool }
    struct ErrorResponse: AnyErrorResponse { let message: String }
    static let shared = ServiceClient(Files(), transport: ScriptedTransport([]))
    var baseURL: URL { URL(filePath: "/") }
    var apiUrl: any UrlConvertible { "files.example.com" }
    func validate(_ response: Response, for endpoint: some Endpoint) throws {
        if response.fields["X-Refused"] != nil { throw EndpointError("Not this one.") }
    }
}

private struct GetFile: OutEndpoint {
    typealias Service = Files
    typealias Output = Data
    let path = "file"
    var contentLimit: Int { 64 }
    var timeout: Duration?
}

private struct MakeFile: InOutEndpoint {
    typealias Service = Files
    static let method = Method.post
    typealias Input = [String: Int]
    typealias Output = Data
    let path = "file"
}

/// A body that comes chunk by chunk, tells that it was asked for one, and never ends.
private final class EndlessBytes: ByteSource {
    let asked = CountWatch()

    func next() async throws -> ByteChunk? {
        asked.increment()
        if asked.count < 3 { return ByteChunk([1, 2, 3]) }
        try await CountWatch().wait(for: 1)
        return nil
    }

    func cancel() {}
}

/// A body of three bytes.
private final class FewBytes: ByteSource {
    private let isRead = Mutex(false)

    func next() async throws -> ByteChunk? {
        isRead.withLock { isRead in
            defer { isRead = true }
            return isRead ? nil : ByteChunk([1, 2, 3])
        }
    }

    func cancel() {}
}

/// Answers with a body.
private struct BodyTransport: Transport {
    let bytes: any ByteSource
    var fields: HeaderFields = [:]
    var enforcesDeadline: Bool { true }

    func send(_ request: URLRequest, body: RequestBody, context: CallContext) async throws -> Response {
        Response(status: .ok, fields: fields, body: ResponseBody(bytes))
    }
}

@Suite("Downloads of endpoints", .timeLimit(.minutes(20)))
final class EndpointDownloadTests {
    private let directory = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")

    init() throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    private static let chunks = (0..<32).map { "chunk number \($0) of a body" }

    /// The files that lie where downloads are made.
    private func files() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path)
    }

    private func client(_ steps: [ScriptedTransport.Step], cache: HTTPCache? = nil) -> ServiceClient<Files> {
        EndpointBed.client(Files(), ScriptedTransport(steps), cache: cache, retrierFactory: .default)
    }

    @Test("Content goes to a file that the caller owns, without a basic response and the limit on content in memory")
    func file() async throws {
        let client = client([.stream(chunks: Self.chunks)])
        let answer = try await GetFile().downloadResponse(to: client, into: directory)
        #expect(try String(contentsOf: answer.value, encoding: .utf8) == Self.chunks.joined())
        let permissions = try FileManager.default.attributesOfItem(atPath: answer.value.path)[.posixPermissions]
        #expect(permissions as? Int == 0o600)
        #expect(try files() == [answer.value.lastPathComponent])
        let body = try await answer.response.body.data()
        #expect(String(decoding: body, as: UTF8.self) == Self.chunks.joined())
    }

    @Test("Content that ends before its Content-Length fails the download and leaves no file")
    func short() async throws {
        let transport = BodyTransport(bytes: FewBytes(), fields: ["Content-Length": "9"])
        let client = ServiceClient(Files(), transport: transport)
        let error = await #expect(throws: EndpointError.self) {
            try await GetFile().makeDownloadRequest(to: client, into: directory)
        }
        #expect((error?.cause as? ServiceError)?.code == .connectionLost)
        #expect(try files().isEmpty)
    }

    @Test(
        "A refused response longer than the limit keeps status, fields and first bytes",
        arguments: [404, 503]
    )
    func longRefusal(_ status: Int) async throws {
        let text = String(repeating: "x", count: 10_000)
        let step = ScriptedTransport.Step.respond(status, ["X-A": "1"], body: text)
        let client = EndpointBed.client(Files(), ScriptedTransport([step], repeatsLastStep: true))
        let download = await #expect(throws: EndpointError.self) {
            try await GetFile().makeDownloadRequest(to: client, into: directory)
        }
        let call = await #expect(throws: EndpointError.self) { try await GetFile().makeRequest(to: client) }
        for error in [download, call] {
            let response = try #require(error?.response)
            #expect(response.status.rawValue == status && response.fields["X-A"] == "1")
            #expect(try await response.body.collect().count == 64)
        }
    }

    @Test("A download with input")
    func input() async throws {
        let url = try await MakeFile().makeDownloadRequest(
            to: client([.respond(body: "made")]),
            with: ["a": 1],
            into: directory
        )
        #expect(try String(contentsOf: url, encoding: .utf8) == "made")
    }

    @Test("Content of a failed download is read as an error response, and no file is left")
    func errorResponse() async throws {
        let client = client([.stream(404, chunks: ["{\"message\":", "\"No such file.\"}"])])
        let error = await endpointError { _ = try await GetFile().makeDownloadRequest(to: client, into: directory) }
        #expect(error?.reason == "No such file.")
        #expect(error?.status == 404)
        #expect(try files().isEmpty)
    }

    @Test("A response that validate refuses makes no file")
    func refused() async throws {
        let client = client([.respond(200, ["X-Refused": "1"], body: "{}")])
        let error = await endpointError { _ = try await GetFile().makeDownloadRequest(to: client, into: directory) }
        #expect(error?.code == .validation)
        #expect(error?.reason == "Not this one.")
        #expect(try files().isEmpty)
    }

    @Test("A broken transfer leaves no file")
    func broken() async throws {
        let failure = ServiceError(.connectionLost, "scripted", progress: .headReceived)
        let client = client([.stream(chunks: Self.chunks, failure: failure)])
        let error = await endpointError { _ = try await GetFile().makeDownloadRequest(to: client, into: directory) }
        #expect(error?.code == .network)
        #expect(try files().isEmpty)
    }

    @Test("A download that is cancelled ends at once and leaves no file")
    func cancelled() async throws {
        let bytes = EndlessBytes()
        let client = ServiceClient(Files(), transport: BodyTransport(bytes: bytes))
        let directory = directory
        let task = Task { try await GetFile().makeDownloadRequest(to: client, into: directory) }
        try await bytes.asked.wait(for: 3)
        #expect(try files().count == 1)
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        #expect(try files().isEmpty)
    }

    @Test("A download that runs out of time ends and leaves no file")
    func late() async throws {
        let bytes = EndlessBytes()
        let clock = ManualClock()
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let client = ServiceClient(Files(), transport: BodyTransport(bytes: bytes), configuration: configuration)
        let directory = directory
        let task = Task {
            await endpointError {
                _ = try await GetFile(timeout: .seconds(9)).makeDownloadRequest(to: client, into: directory)
            }
        }
        try await bytes.asked.wait(for: 3)
        clock.advance(by: .seconds(9))
        #expect(await task.value?.code == .timeout)
        #expect(try files().isEmpty)
    }

    @Test("An unwritable directory is an error that says so")
    func noDirectory() async throws {
        let nowhere = directory.appending(path: "nowhere")
        let client = client([.respond(body: "x")])
        let error = await endpointError { _ = try await GetFile().makeDownloadRequest(to: client, into: nowhere) }
        #expect(error?.details?.contains("could not be written to its directory") == true)
    }

    @Test("Each download from the cache is a separate file")
    func stored() async throws {
        let transport = ScriptedTransport([
            .stream(200, ["Cache-Control": "max-age=60"], chunks: Self.chunks, length: Self.chunks.joined().utf8.count)
        ])
        let client = EndpointBed.client(Files(), transport, cache: .inMemory())
        var urls: [URL] = []
        for _ in 0..<2 { urls.append(try await GetFile().makeDownloadRequest(to: client, into: directory)) }
        #expect(Set(urls).count == 2)
        #expect(transport.sent.count == 1)
        for url in urls { #expect(try String(contentsOf: url, encoding: .utf8) == Self.chunks.joined()) }
    }

    @Test("An attempt with a broken transfer is retried if the retrier checks attempts, and its file is removed")
    func retried() async throws {
        let failure = ServiceError(.connectionLost, "scripted", progress: .headReceived)
        let transport = ScriptedTransport([
            .stream(chunks: ["broken"], failure: failure), .stream(chunks: ["whole"]),
        ])
        let factory = AnyRetrierFactory(checksAttempts: true) { _ in
            BackoffRetrier(strategy: .exponentialBinary(), retryCondition: { _ in true })
        }
        let client = EndpointBed.client(Files(), transport, retrierFactory: factory)
        let url = try await GetFile().makeDownloadRequest(to: client, into: directory)
        #expect(try String(contentsOf: url, encoding: .utf8) == "whole")
        #expect(try files() == [url.lastPathComponent])
    }

    @Test("A stored response stays if its content cannot be written to the caller's directory")
    func storedStays() async throws {
        let transport = ScriptedTransport([
            .stream(
                200,
                ["Cache-Control": "max-age=60"],
                chunks: Self.chunks,
                length: Self.chunks.joined().utf8.count
            )
        ])
        let client = EndpointBed.client(Files(), transport, cache: .inMemory())
        _ = try await GetFile().makeDownloadRequest(to: client, into: directory)
        let nowhere = directory.appending(path: "nowhere")
        let error = await endpointError { _ = try await GetFile().makeDownloadRequest(to: client, into: nowhere) }
        #expect(error?.details?.contains("could not be written to its directory") == true)
        _ = try await GetFile().makeDownloadRequest(to: client, into: directory)
        #expect(transport.sent.count == 1)
    }
}
