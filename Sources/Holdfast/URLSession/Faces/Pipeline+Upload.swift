// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
private import HoldfastStorage

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

extension Pipeline {
    /// Sends content from memory and loads the answer, as `URLSession.upload(for:from:)` does.
    ///
    /// The content takes the place of what the request carries itself. The request's method is sent as it is: set POST or PUT.
    /// A retry sends the content again whole, where the rules of retrying allow it.
    ///
    /// - Throws: ``ServiceError``, or `CancellationError` promptly after cancellation.
    public func upload(
        for request: URLRequest,
        from bodyData: Data,
        options: CallOptions = CallOptions()
    ) async throws -> (Data, URLResponse) {
        try await data(for: request, body: .data(bodyData), options: options)
    }

    /// Sends the content of a file and loads the answer, as `URLSession.upload(for:fromFile:)` does.
    ///
    /// The file is read anew by each attempt and must not change while the call lasts. It takes the place of what the request
    /// carries itself. The request's method is sent as it is: set POST or PUT.
    ///
    /// - Throws: ``ServiceError``, with `.badRequest` where the file cannot be read and nothing was sent; `CancellationError`
    ///   promptly after cancellation.
    public func upload(
        for request: URLRequest,
        fromFile fileURL: URL,
        options: CallOptions = CallOptions()
    ) async throws -> (Data, URLResponse) {
        try await Pipeline.checkReadable(fileURL)
        return try await data(for: request, body: .file(fileURL), options: options)
    }

    /// Refuses what no attempt could read, so that no transport has to begin with it.
    private static func checkReadable(_ file: URL) async throws {
        do {
            guard file.isFileURL else { throw URLError(.unsupportedURL) }
            try await BlockingWork.run {
                let files = POSIXFileSystem()
                let path = file.resolvingSymlinksInPath().path
                guard try files.attributes(of: path).kind == .file else { throw URLError(.fileIsDirectory) }
                files.close(try files.open(path, .read))
            }
        } catch {
            throw ServiceError(
                .badRequest,
                "The file to upload cannot be read, so nothing was sent; check its path and rights.",
                cause: error,
                progress: .notSent
            )
        }
    }
}
