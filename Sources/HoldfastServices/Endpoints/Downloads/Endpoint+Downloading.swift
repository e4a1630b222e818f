// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast

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
