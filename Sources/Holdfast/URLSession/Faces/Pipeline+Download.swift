// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import HoldfastStorage

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

extension Pipeline {
    /// Loads a URL into a file, as `URLSession.download(for:)` does.
    ///
    /// The body is written as it comes, in little memory, whatever its status. The file lies in the temporary directory and can
    /// be read by this user only. It is the caller's, who moves or removes it. When the call fails or is cancelled no file is
    /// left.
    ///
    /// - Returns: the file, and an `HTTPURLResponse`.
    /// - Throws: ``ServiceError``, with `.other` where the file cannot be written; `CancellationError` promptly after
    ///   cancellation.
    public func download(
        for request: URLRequest,
        options: CallOptions = CallOptions()
    ) async throws -> (URL, URLResponse) {
        try await download(for: request, options: options, into: FileManager.default.temporaryDirectory)
    }

    /// Loads a URL into a file; as ``download(for:options:)`` with a plain GET.
    public func download(from url: URL, options: CallOptions = CallOptions()) async throws -> (URL, URLResponse) {
        try await download(for: URLRequest(url: url), options: options)
    }

    /// As ``download(for:options:)``, into a directory of the caller's choice.
    func download(
        for request: URLRequest,
        options: CallOptions = CallOptions(),
        into directory: URL,
        on files: any FileSystem = POSIXFileSystem()
    ) async throws -> (URL, URLResponse) {
        var options = options
        options.isDownload = true
        let response = try await send(request, options: options)
        return try await response.releasingBody {
            let head = try response.foundationResponse()
            let file = try await DownloadFile.make(in: directory, on: files)
            do {
                for try await chunk in response.body { try await file.append(chunk) }
                // A body that lies in memory asks nobody whether the call is still wanted.
                try Task.checkCancellation()
            } catch {
                await file.remove()
                throw error
            }
            return (file.url, head)
        }
    }
}
