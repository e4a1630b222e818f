// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast
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
        try await download(.nothing, to: client, into: directory, onProgress: onProgress)
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
        let input = EndpointInput.values(input, as: Self.inputFormat)
        return try await download(input, to: client, into: directory, onProgress: onProgress)
    }
}

extension Endpoint {
    fileprivate func download(
        _ input: EndpointInput,
        to client: ServiceClient<Service>?,
        into directory: URL?,
        onProgress: EndpointProgress?
    ) async throws(Service.RequestError) -> DecodedResponse<URL> {
        let files = DownloadedFiles(
            in: directory ?? FileManager.default.temporaryDirectory,
            method: Self.method
        )
        do {
            let answer = try await send(to: client, input: input, output: .file(files), onProgress: onProgress)
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
    fileprivate static func file(_ files: DownloadedFiles) -> EndpointOutput {
        var output = EndpointOutput { _, _, _ in
            throw ServiceError(.unsupported, "A download is not decoded from bytes in memory. Call receive.")
        }
        output.take = { response in try await files.take(&response) }
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
    private let method: HttpMethod
    private let state = Mutex(State())

    init(in directory: URL, method: HttpMethod) { (self.directory, self.method) = (directory, method) }

    /// Writes the content to a file, which becomes the response's body; if that fails, the next attempt writes another one.
    func take(_ response: inout Response) async throws -> URL {
        let file = try await makeFile()
        let snapshot: FileSnapshot
        do {
            for try await chunk in response.body { try await file.append(chunk) }
            try file.checkLength(by: response, method: method.rawValue)
            snapshot = try await BlockingWork.run { try FileSnapshot(of: file.url) }
        } catch {
            response.body.discard()
            await file.remove()
            state.withLock { state in state.urls.removeAll { $0 == file.url } }
            throw error
        }
        response.body = ResponseBody(FileSource(snapshot), length: snapshot.size)
        return file.url
    }

    /// Creates a file for this call; throws if the call is over.
    private func makeFile() async throws -> DownloadFile {
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
