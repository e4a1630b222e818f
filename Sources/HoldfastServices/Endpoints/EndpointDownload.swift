// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast
internal import HoldfastStorage
private import Synchronization
extension OutEndpoint {
    /// Calls the endpoint and writes the content of its response to a file while it arrives, using little memory.
    ///
    /// The content is not decoded, and the stage of the basic response is skipped. If the response is refused, its content is
    /// decoded as the service's error response.
    ///
    /// - Parameters:
    ///   - client: sends the call; the service's shared client by default.
    ///   - directory: where to create the file, for example on the volume it will be moved to; the temporary directory by
    ///     default.
    ///   - onProgress: is called with the received share of the response, from 0 to 1.
    /// - Returns: a file that only this user can read. It belongs to the caller, who moves or removes it. If the call fails or
    ///   is cancelled, no file is left.
    /// - Throws: ``EndpointError`` or `CancellationError`, unless the service's `mapError` returns something else.
    public func makeDownloadRequest(
        to client: ServiceClient<Service>? = nil,
        into directory: URL? = nil,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> URL {
        try await downloadResponse(to: client, into: directory, onProgress: onProgress).value
    }

    /// Writes the content to a file and returns the response too; otherwise like ``makeDownloadRequest(to:into:onProgress:)``.
    ///
    /// The response's body is read from the file.
    public func downloadResponse(
        to client: ServiceClient<Service>? = nil,
        into directory: URL? = nil,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> DecodedResponse<URL> {
        try await download(to: client, directory: directory, onProgress: onProgress, input: .nothing)
    }
}

extension InOutEndpoint {
    /// Calls the endpoint and writes the content of its response to a file while it arrives, using little memory.
    ///
    /// The content is not decoded, and the stage of the basic response is skipped. If the response is refused, its content is
    /// decoded as the service's error response.
    ///
    /// - Parameters:
    ///   - client: sends the call; the service's shared client by default.
    ///   - input: the values to send; encoded once, before anything else.
    ///   - directory: where to create the file, for example on the volume it will be moved to; the temporary directory by
    ///     default.
    ///   - onProgress: is called with the received share of the response, from 0 to 1.
    /// - Returns: a file that only this user can read. It belongs to the caller, who moves or removes it. If the call fails or
    ///   is cancelled, no file is left.
    /// - Throws: ``EndpointError`` or `CancellationError`, unless the service's `mapError` returns something else.
    public func makeDownloadRequest(
        to client: ServiceClient<Service>? = nil,
        with input: Input,
        into directory: URL? = nil,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> URL {
        try await downloadResponse(to: client, with: input, into: directory, onProgress: onProgress).value
    }

    /// Writes the content to a file and returns the response too; otherwise like
    /// ``makeDownloadRequest(to:with:into:onProgress:)``.
    ///
    /// The response's body is read from the file.
    public func downloadResponse(
        to client: ServiceClient<Service>? = nil,
        with input: Input,
        into directory: URL? = nil,
        onProgress: EndpointProgress? = nil
    ) async throws(Service.RequestError) -> DecodedResponse<URL> {
        try await download(
            to: client,
            directory: directory,
            onProgress: onProgress,
            input: .values(input, format: Self.inputFormat)
        )
    }
}

extension Endpoint {
    fileprivate func download(
        to client: ServiceClient<Service>?,
        directory: URL?,
        onProgress: EndpointProgress?,
        input: EndpointInput
    ) async throws(Service.RequestError) -> DecodedResponse<URL> {
        let files = DownloadedFiles(in: directory ?? FileManager.default.temporaryDirectory)
        do {
            let answer = try await send(to: client ?? Service.current, onProgress: onProgress) { service, progress in
                let stages = EndpointStages(endpoint: self, service: service)
                return EndpointCall<Self, URL>(
                    self,
                    service: service,
                    input: input,
                    output: .file(files, stages: stages, progress: progress),
                    progress: progress
                )
            }
            files.settle(keeping: answer.value)
            return answer
        } catch {
            files.settle(keeping: nil)
            throw error
        }
    }
}

extension EndpointOutput where Output == URL {
    /// The content in a file.
    fileprivate static func file<Target: Endpoint>(
        _ files: DownloadedFiles,
        stages: EndpointStages<Target>,
        progress: ProgressReport
    ) -> EndpointOutput {
        var output = EndpointOutput(
            check: { _ in },
            decode: { _, _, _ in
                throw ServiceError(.unsupported, "A download is not decoded from bytes in memory. Call receive.")
            }
        )
        output.take = { response in
            do {
                try stages.judge(response)
            } catch {
                let content = try await response.takeContent(upTo: stages.endpoint.contentLimit, isRefused: true)
                throw stages.refusal(of: response, content.withUnsafeBytes { Data($0) }, because: error)
            }
            let file = try await files.makeFile()
            do {
                for try await chunk in progress.watching(response.body) {
                    try await file.append(chunk)
                }
                try file.checkLength(by: response)
            } catch {
                response.body.discard()
                await files.discard(file)
                throw error
            }
            response.body = ResponseBody(DownloadedBytes(file.url), length: file.count)
            return file.url
        }
        return output
    }
}

/// The files that one call wrote; only the one that its caller gets remains.
final class DownloadedFiles: Sendable {
    private struct State {
        var urls: [URL] = []
        var isSettled = false
    }

    private let directory: URL
    private let state = Mutex(State())

    init(in directory: URL) {
        self.directory = directory
    }

    /// Creates a file for this call; throws if the call is over.
    func makeFile() async throws -> DownloadFile {
        let file = try await DownloadFile.make(in: directory)
        let isLate = state.withLock { state in
            if !state.isSettled { state.urls.append(file.url) }
            return state.isSettled
        }
        // A call that ended at its deadline does not wait for work it had started.
        guard isLate else { return file }
        await file.remove()
        throw CancellationError()
    }

    /// Removes a file that a failed attempt left; the next attempt writes another one.
    func discard(_ file: DownloadFile) async {
        await file.remove()
        state.withLock { state in state.urls.removeAll { $0 == file.url } }
    }

    /// Ends the call: removes all files but the caller's, and any that would be created later.
    func settle(keeping kept: URL?) {
        let urls = state.withLock { state in
            defer { state.urls = [] }
            state.isSettled = true
            return state.urls
        }
        for url in urls where url != kept { try? FileManager.default.removeItem(at: url) }
    }
}

/// The bytes of a downloaded file; opened when they are first read.
final class DownloadedBytes: ByteSource {
    private struct State {
        var reader: ReadableFile?
        var offset = 0
        /// The file has been closed.
        var isAtEnd = false
        var isCancelled = false
    }

    private static let chunkSize = 64 << 10
    private let path: String
    private let state = Mutex(State())

    init(_ url: URL) {
        path = url.path
    }

    func next() async throws -> ByteChunk? {
        try Task.checkCancellation()
        let (known, offset, isAtEnd) = try state.withLock { state in
            guard !state.isCancelled else { throw CancellationError() }
            return (state.reader, state.offset, state.isAtEnd)
        }
        if isAtEnd { return nil }
        let path = path
        let (reader, bytes) = try await BlockingWork.run {
            let reader = try known ?? ReadableFile(path)
            return (reader, try reader.read(from: offset, count: DownloadedBytes.chunkSize))
        }
        return try state.withLock { state in
            guard !state.isCancelled else { throw CancellationError() }
            state.reader = bytes.isEmpty ? nil : reader
            state.isAtEnd = bytes.isEmpty
            state.offset = offset + bytes.count
            return bytes.isEmpty ? nil : ByteChunk(bytes)
        }
    }

    func cancel() {
        state.withLock { state in
            state.isCancelled = true
            state.reader = nil
        }
    }
}
